import { type Address, commitmentOf, type FieldName, type Hex32, leafOf } from "@svc/protocol";
import {
  buyPackage,
  createApiKey,
  createDomain,
  createOrganization,
} from "../service/src/accounts/index.ts";
import { listOwnCredentials } from "../service/src/credentials/collection.ts";
import { getBuiltInIssuer, issueCredential } from "../service/src/credentials/index.ts";
import { ensureBuiltInIssuers } from "../service/src/credentials/issuers.ts";
import { settleWithoutChain } from "../service/src/credentials/test-credentials.ts";
import type { Ctx } from "../service/src/platform/context.ts";
import type { Person } from "../test/kyc-world.ts";
import { newIdentity } from "../test/raw-wallet.ts";
import { forEachOf, times } from "./load.ts";

/** A client domain that asks, and people who answer. */
export interface KycParties {
  readonly apiKey: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly people: readonly Person[];
}

const year = 365 * 86_400;

/** People with a date of birth and an e-mail address each; their credentials count, whatever the chain says. */
export async function seedParties(ctx: Ctx, count: number): Promise<KycParties> {
  const { id: organizationId } = await createOrganization(ctx, { name: "Bench" }, "bench");
  const domain = { organizationId, domain: "localhost", environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(ctx, domain, "bench");
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "bench" }, "bench");
  await ensureBuiltInIssuers(ctx);
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + year;
  const people = await forEachOf(times(count), 10, async (index) => {
    const identity = newIdentity();
    const user = identity.address;
    const fields = [{ field: "IDCARD_DOB", data: "1990-05-17" }];
    await issueCredential(ctx, issuer, { user, expiresAt, document: "IDCARD", fields });
    const mail = [{ field: "EMAIL", data: `p${index}@example.com` }];
    await issueCredential(ctx, issuer, { user, expiresAt, document: "CONTACT", fields: mail });
    return { ...identity, held: await listHeld(ctx, user) };
  });
  for (let batch = 0; batch * 500 < count * 2 + 500; batch += 1) await settleWithoutChain(ctx);
  return { apiKey, clientDomainId, organizationId, people };
}

async function listHeld(ctx: Ctx, user: Address): Promise<Person["held"]> {
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: 10 });
  return items.flatMap(({ id, fields }) =>
    fields.map(({ field, data = "", pepper = "0x", expiresAt }) => {
      const info: { field: FieldName; data: string; pepper: Hex32 } = { field, data, pepper };
      const leaf = leafOf({ user, field, commitment: commitmentOf(info), expiresAt });
      return { ...info, expiresAt, leaf, credentialId: id };
    }),
  );
}

/** A package with room for a round. The orders of every round are new ones, since the key of an order has the package in it. */
export async function buyForRound(
  ctx: Ctx,
  clientDomainId: string,
): Promise<{ id: string; sourceKey: string }> {
  const given = { clientDomainId, name: "Bench", fields: null, transfers: 2000, priceRappen: 0n };
  const { kycPackage } = await buyPackage(ctx, given, "bench");
  return { id: kycPackage.id, sourceKey: kycPackage.sourceKey };
}

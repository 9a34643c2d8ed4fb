import type { Ctx } from "../platform/context.ts";
import { parseUuid, uuidv7 } from "../platform/ids.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { lockDomain } from "./client-domain-store.ts";
import { getDomain } from "./client-domains.ts";
import { spend } from "./ledger.ts";
import { parseName } from "./organization.ts";
import { checkPackage, type KycPackage } from "./package.ts";
import * as store from "./package-store.ts";

const packagesMax = 100;
const keyBytes = 32;

export const signingKeyColumn: SealedColumn = {
  table: "kyc_package",
  idColumn: "id",
  column: "signing_key_sealed",
};

export const nextSigningKeyColumn: SealedColumn = {
  table: "kyc_package",
  idColumn: "id",
  column: "next_signing_key_sealed",
};

/** A package at the moment it is bought, the only time that its signing key is shown. */
export interface BoughtPackage {
  readonly kycPackage: KycPackage;
  readonly signingKey: string;
}

/**
 * Buys a package from the organization's balance, once.
 *
 * @param given.fields null for a package whose requests name their own
 * @throws {Problem} invalid_request, client_domain_not_found, too_many (100 packages), insufficient_credit
 */
export async function buyPackage(
  ctx: Ctx,
  given: {
    clientDomainId: string;
    name: string;
    fields: readonly string[] | null;
    transfers: number;
    priceRappen: bigint;
  },
  actor: string,
): Promise<BoughtPackage> {
  const name = parseName(given.name);
  checkPackage(given);
  const domain = await getDomain(ctx, given.clientDomainId);
  const id = uuidv7(ctx.clock, ctx.random);
  const signingKey = `whk_${ctx.random.bytes(keyBytes).toString("base64url")}`;
  const kycPackage: KycPackage = {
    id,
    clientDomainId: domain.id,
    name,
    sourceKey: `sk_${ctx.random.bytes(keyBytes).toString("base64url")}`,
    fields: given.fields,
    transfersTotal: given.transfers,
    transfersHeld: 0,
    transfersConsumed: 0,
    priceRappen: given.priceRappen,
    createdAt: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) => {
    // Purchases of one domain wait for each other, so that the limit and the money are checked one after the other.
    await lockDomain(tx, domain.id);
    if ((await store.listPackages(tx, domain.id)).length >= packagesMax)
      throw new Problem("too_many", {
        message: `a client domain has at most ${packagesMax} packages`,
      });
    const purse = { organizationId: domain.organizationId, environment: domain.environment };
    if (given.priceRappen > 0n) {
      const amountRappen = given.priceRappen;
      await spend(ctx, tx, { purse, kind: "package", subject: id, amountRappen });
    }
    const place = placeIn(signingKeyColumn, id);
    const signingKeySealed = ctx.seal.seal(Buffer.from(signingKey), place);
    await store.insertPackage(tx, { ...kycPackage, signingKeySealed });
    await ctx.audit.record(tx, {
      actor,
      action: "package.buy",
      subject: id,
      details: {
        clientDomainId: domain.id,
        fields: given.fields ?? "dynamic",
        transfers: given.transfers,
        priceRappen: String(given.priceRappen),
      },
    });
  });
  return { kycPackage, signingKey };
}

/** Packages of a client domain in the order they were bought. @throws {Problem} client_domain_not_found */
export async function listPackages(ctx: Ctx, clientDomainId: string): Promise<KycPackage[]> {
  const domain = await getDomain(ctx, clientDomainId);
  return store.listPackages(ctx.db, domain.id);
}

/** @throws {Problem} package_not_found */
export async function getPackage(ctx: Ctx, id: string): Promise<KycPackage> {
  const uuid = parseUuid(id);
  const found = uuid === null ? null : await store.findPackage(ctx.db, uuid);
  if (found === null) throw new Problem("package_not_found");
  return found;
}

/** The keys that sign webhooks now, by package. One that cannot be unsealed is logged and left out. */
export async function readSigningKeys(
  ctx: Pick<Ctx, "db" | "seal" | "log">,
  ids: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const rows = await store.listSigningKeys(ctx.db, ids);
  const keys = new Map<string, string>();
  for (const { id, sealed } of rows) {
    try {
      keys.set(id, ctx.seal.open(sealed, placeIn(signingKeyColumn, id)).toString());
    } catch (error) {
      ctx.log.error(
        { err: error, packageId: id },
        "the signing key of a package cannot be decrypted",
      );
    }
  }
  return keys;
}

/**
 * Makes the successor of a package's signing key and shows it, before anything is signed with it.
 *
 * @param of.isReplacing replaces a successor that was made before: if that got lost, nobody could switch to it
 * @throws {Problem} package_not_found, invalid_request if there is one already
 */
export async function makeNextSigningKey(
  ctx: Ctx,
  of: { id: string; isReplacing?: boolean },
  actor: string,
): Promise<string> {
  const { id: uuid } = await getPackage(ctx, of.id);
  const key = `whk_${ctx.random.bytes(keyBytes).toString("base64url")}`;
  const place = placeIn(nextSigningKeyColumn, uuid);
  await ctx.db.transaction(async (tx) => {
    const isFree = (await store.findNextKey(tx, uuid)) === null;
    if (!isFree && of.isReplacing !== true)
      throw invalidRequest(
        "the package has a next signing key already; switch to it, or replace it",
      );
    await store.setNextKey(tx, uuid, ctx.seal.seal(Buffer.from(key), place));
    await ctx.audit.record(tx, { actor, action: "package.next-key", subject: uuid });
  });
  return key;
}

/** Lets the successor sign from now on. @throws {Problem} package_not_found, invalid_request if there is none */
export async function switchSigningKey(ctx: Ctx, id: string, actor: string): Promise<void> {
  const { id: uuid } = await getPackage(ctx, id);
  await ctx.db.transaction(async (tx) => {
    const sealed = await store.findNextKey(tx, uuid);
    if (sealed === null)
      throw invalidRequest("the package has no next signing key; make one first");
    const key = ctx.seal.open(sealed, placeIn(nextSigningKeyColumn, uuid));
    await store.switchKey(tx, uuid, ctx.seal.seal(key, placeIn(signingKeyColumn, uuid)));
    await ctx.audit.record(tx, { actor, action: "package.switch-key", subject: uuid });
  });
}

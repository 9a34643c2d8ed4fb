// What the demo's people have verified, and the coin they hold.
import type { Address } from "@svc/protocol";
import { fundAccount } from "@svc/service/chain";
import { findVerified, getBuiltInIssuer, issueCredential } from "@svc/service/credentials";
import type { Service } from "@svc/service";

/** One coin of 18 decimals is plenty, since gas is free. */
const coinWei = 10n ** 18n;
const lifetimeSeconds = 5 * 365 * 86_400;

const alicesDocuments = [
  {
    document: "IDCARD",
    fields: [
      { field: "IDCARD_NAME", data: "Alice Example" },
      { field: "IDCARD_NAME_EN", data: "Alice Example" },
      { field: "IDCARD_FIRST_NAME", data: "Alice" },
      { field: "IDCARD_LAST_NAME", data: "Example" },
      { field: "IDCARD_DOB", data: "1990-05-17" },
      { field: "IDCARD_PLACE_OF_BIRTH", data: "Zürich" },
      { field: "IDCARD_NATIONALITY", data: "CHE" },
      { field: "IDCARD_SEX", data: "F" },
      { field: "IDCARD_COUNTRY", data: "CHE" },
      { field: "IDCARD_DOCUMENT_NUMBER", data: "E1234567" },
      { field: "IDCARD_ISSUE_DATE", data: "2022-03-01" },
      { field: "IDCARD_EXPIRY_DATE", data: "2032-02-28" },
    ],
  },
  {
    document: "ADDRESS",
    fields: [
      { field: "ADDRESS_STREET", data: "Bahnhofstrasse" },
      { field: "ADDRESS_HOUSE_NUMBER", data: "1" },
      { field: "ADDRESS_ZIP_CODE", data: "8001" },
      { field: "ADDRESS_CITY", data: "Zürich" },
      { field: "ADDRESS_COUNTRY", data: "CHE" },
    ],
  },
  {
    document: "CONTACT",
    fields: [
      { field: "EMAIL", data: "alice@example.com" },
      { field: "PHONE", data: "+41791234567" },
    ],
  },
] as const;

/** Hands out coin of the embedded chain, one account after the other, because the faucet serves one at a time. */
export async function fundIdentities(
  { ctx }: Service,
  addresses: readonly Address[],
): Promise<void> {
  if (!ctx.chain.isEmbedded) return;
  for (const address of addresses) await fundAccount(ctx, { address, amountWei: 1000n * coinWei });
}

/** Issues, as the demo issuer, what alice does not have verified yet. */
export async function verifyAlice(service: Service, alice: Address): Promise<void> {
  const { ctx } = service;
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + lifetimeSeconds;
  const missing = new Set(await listUnverified(service, alice));
  for (const { document, fields } of alicesDocuments)
    if (fields.some(({ field }) => missing.has(field)))
      await issueCredential(ctx, issuer, { user: alice, document, fields, expiresAt });
}

/** Whether all of alice's fields count, which takes a block. */
export async function isVerified(service: Service, alice: Address): Promise<boolean> {
  return (await listUnverified(service, alice)).length === 0;
}

async function listUnverified({ ctx }: Service, alice: Address): Promise<readonly string[]> {
  const names = alicesDocuments.flatMap(({ fields }) => fields.map(({ field }) => field));
  const asker = { id: null, organizationId: "", environment: "live" } as const;
  const { unverified } = await findVerified(ctx, asker, { user: alice, names });
  return unverified;
}

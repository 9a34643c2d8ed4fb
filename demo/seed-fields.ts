// What the demo's people have verified, and the coin they hold.
import type { Address } from "@svc/protocol";
import { fundAccount } from "@svc/service/chain";
import { findVerified, getBuiltInIssuer, issueCredential } from "@svc/service/credentials";
import type { Service } from "@svc/service";
import { setTimeout as delay } from "node:timers/promises";

/** One coin of 18 decimals is plenty where gas is free. */
const coinWei = 10n ** 18n;
const lifetimeSeconds = 5 * 365 * 86_400;
const settledWithinMs = 20_000;
const pollMs = 25;

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

/** Hands out coin, one account after the other: they share the faucet's turn. */
export async function fundIdentities(
  { ctx }: Service,
  addresses: readonly string[],
): Promise<void> {
  for (const address of addresses)
    await fundAccount(ctx, { address: address as Address, amountWei: 1000n * coinWei });
}

/** Issues alice's documents by the demo issuer and waits until they count, which takes a block. */
export async function verifyAlice(service: Service, alice: string): Promise<void> {
  const { ctx } = service;
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + lifetimeSeconds;
  for (const { document, fields } of alicesDocuments)
    await issueCredential(ctx, issuer, { user: alice, document, fields, expiresAt });
  const names = alicesDocuments.flatMap(({ fields }) => fields.map(({ field }) => field));
  const asker = { organizationId: "", environment: "live" } as const;
  const deadline = Date.now() + settledWithinMs;
  for (;;) {
    const asked = { user: alice as Address, names };
    const { unverified } = await findVerified(ctx, asker, asked);
    if (unverified.length === 0) return;
    if (Date.now() > deadline) throw new Error("the demo's documents were not attested in time");
    await delay(pollMs);
  }
}

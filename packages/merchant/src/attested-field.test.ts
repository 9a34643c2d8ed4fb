import assert from "node:assert/strict";
import { test } from "node:test";

import type { Address, Hex32 } from "@svc/protocol";

import { judgeFields, readIssuers, type AttestedField } from "./attested-field.ts";
import type { ChainView, RootStatus } from "./chain-view.ts";
import { MerchantError } from "./merchant-error.ts";

const now = 1_800_000_000;
const registry: Address = `0x${"1".repeat(40)}`;
const [issuer, other]: [Address, Address] = [`0x${"2".repeat(40)}`, `0x${"3".repeat(40)}`];
const root: Hex32 = `0x${"44".repeat(32)}`;
const never: RootStatus = { attestedAt: 0, revokedAt: 0, distrustedFrom: 0 };
const attested: RootStatus = { ...never, attestedAt: now - 100 };

const fault = (index: number, member: string): MerchantError =>
  new MerchantError("proof_refused", { reason: `${index}.${member}` });

/** Judges fields of the same root, one for each issuer, of whom the registry says this. */
async function judge(
  status: (issuer: Address) => RootStatus,
  expiresAt = now + 1,
  issuers: readonly Address[] = [issuer],
): Promise<AttestedField[]> {
  const view = {
    findStatus: async (_registry, of) => status(of.issuer),
  } as Partial<ChainView> as ChainView;
  const fields = issuers.map((each) => ({ field: "EMAIL", issuer: each, root, expiresAt }));
  return judgeFields(view, fields, { registry, issuers: readIssuers(issuers), now, fault });
}

const standingOf = async (status: Partial<RootStatus>, expiresAt?: number) =>
  (await judge(() => ({ ...attested, ...status }), expiresAt))[0]?.standing;

test("a field is live until the second of its end, and until the second of its issuer's distrust", async () => {
  const { attestedAt } = attested;
  assert.equal(await standingOf({}), "LIVE");
  assert.equal(await standingOf({}, now), "EXPIRED");
  assert.equal(await standingOf({ distrustedFrom: attestedAt + 1 }), "LIVE");
  assert.equal(await standingOf({ distrustedFrom: attestedAt }), "DISTRUSTED");
});

test("what was taken back is said to be revoked, whatever else ended it", async () => {
  assert.equal(await standingOf({ revokedAt: now, distrustedFrom: 1 }, now - 1), "REVOKED");
  assert.equal(await standingOf({ distrustedFrom: 1 }, now - 1), "DISTRUSTED");
});

test("a document attested more than five minutes ahead of the caller's clock, or never, does not count", async () => {
  const refused = { code: "proof_refused", reason: "0.root" };
  assert.equal(await standingOf({ attestedAt: now + 300 }), "LIVE");
  await assert.rejects(standingOf({ attestedAt: now + 301 }), refused);
  await assert.rejects(standingOf({ attestedAt: 0 }), refused);
});

test("of two issuers that name the same root each answers for its own", async () => {
  const status = (by: Address): RootStatus =>
    by === issuer ? attested : { ...attested, revokedAt: now };
  const judged = await judge(status, now + 1, [issuer, other]);
  assert.deepEqual(
    judged.map(({ standing }) => standing),
    ["LIVE", "REVOKED"],
  );
  await assert.rejects(
    judge((by) => (by === issuer ? attested : never), now + 1, [issuer, other]),
    { code: "proof_refused", reason: "1.root" },
  );
});

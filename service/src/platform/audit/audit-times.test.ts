// The times of entries when a clock is wrong or was moved: none of them may look like an inserted entry.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chainAll } from "../../../../test/linked-audit.ts";
import { createRandom } from "../cryptography/random.ts";
import { openInstallationKeys } from "../cryptography/installation-keys.ts";
import { createSeal } from "../cryptography/seal.ts";
import { openDb, sql } from "../database/db.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { createAudit } from "./audit.ts";
import type { AuditContext } from "./audit-chain.ts";

const now = 1_700_000_000;
/** Longer than any transaction stays open. */
const hoursSeconds = 7200;

await using database = await openTestDatabase();
await using db = openDb({ ...database.connection, connections: 2 });
const clock = { now: () => now, nowMs: () => now * 1000 };
const seal = createSeal(["a1".repeat(32)]);
const keys = await openInstallationKeys({ db, seal, clock, random: createRandom() });
const ctx: AuditContext = { db, clock, keys };

/** One entry of a process with this clock, in the chain. */
async function recordBy(other: AuditContext["clock"]): Promise<void> {
  const entry = { actor: "system", action: "test.run", subject: "x" };
  await createAudit({ ...ctx, clock: other }).record(db, entry);
  await chainAll(ctx);
}

async function faults(): Promise<[string, number | null][]> {
  const report = await createAudit(ctx).verify();
  return report.faults.map(({ kind, position }) => [kind, position]);
}

await test("entries of machines whose clocks are hours off are not taken for inserted ones", async () => {
  for (const aheadMs of [hoursSeconds * 1000, -hoursSeconds * 1000]) {
    const nowMs = () => now * 1000 + aheadMs;
    await recordBy({ now: () => nowMs() / 1000, nowMs, aheadMs: () => aheadMs });
    await recordBy(clock);
  }
  assert.deepEqual(await faults(), []);
});

await test("an entry of a process that had not heard that the time was moved is in its place", async () => {
  await db.query(sql`update clock set offset_seconds = ${hoursSeconds}`);
  const moved = now + hoursSeconds;
  await recordBy({ now: () => moved, nowMs: () => moved * 1000 });
  await recordBy(clock);
  assert.deepEqual(await faults(), []);
  await db.query(sql`update clock set offset_seconds = 0`);
  assert.deepEqual(await faults(), [["entry_inserted", 6]]);
});

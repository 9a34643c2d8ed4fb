import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { openContext } from "../../compose.ts";
import { parseConfig } from "../../platform/config/config.ts";
import { sql } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import { lookAtOpen } from "./roster.ts";
import { claimLooks, requestLook } from "./roster-store.ts";

await using database = await openTestDatabase();
await using ctx = await openContext(
  parseConfig({ DATABASE_URL: database.url, MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent" }),
);
const addressOf = (number: number): Address => `0x${String(number).padStart(40, "0")}`;

/** Addressed by number, from 1. */
async function insertBusinesses(total: number): Promise<void> {
  await ctx.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      select '0x' || lpad(n::text, 40, '0'), 'live', 'Test Ltd', 'active', ${addressOf(0)}, n::text, 0,
        ${Buffer.alloc(32)}, ${Buffer.alloc(1)}, 0
      from generate_series(1::int, ${total}) as n
      on conflict do nothing`,
  );
}

await test("a business is looked at while members vote or an act of theirs is on its way, and otherwise not", async () => {
  await insertBusinesses(5);
  const [voting, voted, open, relaying, done] = [1, 2, 3, 4, 5].map(addressOf);
  for (const [business, status, endedAt] of [
    [voting, "open", null],
    [voted, "approved", 0],
  ] as const)
    await ctx.db.query(sql`
      insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status,
        created_at, ended_at)
      values (${business}, 'data_request', ${business}, 2, 0, ${[addressOf(0)]}, 1, 0, 0, ${status}, 0, ${endedAt})`);
  for (const [business, status, endedAt] of [
    [open, "open", null],
    [relaying, "relaying", null],
    [done, "executed", 0],
  ] as const)
    await ctx.db.query(sql`
      insert into business_proposal (id, business, operation, arguments, proposer, nonce, status, created_at, ended_at)
      values (${business}, ${business}, 'moveTo', ${Buffer.alloc(32)}, ${addressOf(0)}, 0, ${status}, 0, ${endedAt})`);
  await lookAtOpen(ctx);
  const due = await ctx.db.query<{ address: Address }>(
    sql`update business set look_due_at = null where look_due_at is not null returning address`,
  );
  assert.deepEqual(due.map(({ address }) => address).toSorted(), [voting, open, relaying]);
});

await test("a business that something has become of is looked at before those where something may have", async () => {
  const total = 1_000;
  await insertBusinesses(total);
  await ctx.db.query(
    sql`insert into business_removal (business, member, ends_at, keep_nonce)
      select address, creator, 0, 0 from business`,
  );
  await lookAtOpen(ctx);
  const claim = async (): Promise<Address[]> => {
    const now = ctx.clock.now();
    const looks = await claimLooks(ctx.db, { now, until: now + 30, limit: 20 });
    return looks.map(({ address }) => address);
  };
  assert.equal((await claim()).length, 20, "those where something may have are due at once");
  for (const number of [1, total / 2, total]) {
    const urgent = addressOf(number);
    await requestLook(ctx.db, urgent);
    assert.ok((await claim()).includes(urgent), urgent);
  }
});

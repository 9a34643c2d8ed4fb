import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { openTestContext } from "../../../../test/test-context.ts";
import { until } from "../../../../test/patience.ts";
import { sql } from "../../platform/database/db.ts";
import { insertMembers } from "./founding-store.ts";
import { lookAtOpen } from "./roster.ts";
import {
  claimLooks,
  deleteMembers,
  findWatchedBlock,
  requestLook,
  rosterChannel,
  saveUnread,
  saveWatched,
  setVotingRights,
} from "./roster-store.ts";

await using ctx = await openTestContext();
const addressOf = (number: number): Address => `0x${String(number).padStart(40, "0")}`;

/** Inserts businesses whose addresses are the numbers from 1 on. */
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

/** Claims all due businesses. @returns their addresses */
async function takeDue(): Promise<Address[]> {
  const due = await ctx.db.query<{ address: Address }>(
    sql`update business set look_due_at = null where look_due_at is not null returning address`,
  );
  return due.map(({ address }) => address).toSorted();
}

await test("a business is swept while members vote or an act of theirs is on its way, and otherwise not", async () => {
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
  assert.deepEqual(await takeDue(), [voting, open, relaying]);
});

await test("a due business is read by one process, which has half a minute for it", async () => {
  await insertBusinesses(5);
  const claim = async (now: number): Promise<Address[]> => {
    const looks = await claimLooks(ctx.db, { now, until: now + 30, limit: 20 });
    return looks.map(({ address }) => address);
  };
  const [first, second] = [addressOf(1), addressOf(2)];
  await requestLook(ctx.db, first);
  await ctx.db.transaction(async (tx) => {
    assert.equal((await claimLooks(tx, { now: 100, until: 130, limit: 20 })).length, 1);
    await requestLook(ctx.db, second);
    assert.deepEqual(await claim(100), [second], "without waiting for the other");
  });
  assert.deepEqual(await claim(129), []);
  assert.deepEqual((await claim(130)).toSorted(), [first, second]);
  await takeDue();
});

await test("a member who leaves a business or loses the vote there keeps its seats in others", async () => {
  await insertBusinesses(2);
  const [business, other] = [addressOf(1), addressOf(2)];
  const [leaves, stays] = [addressOf(8), addressOf(9)];
  for (const each of [business, other]) {
    const members = [leaves, stays].map((member) => {
      const nameSealed = Buffer.alloc(1);
      const id = randomUUID();
      return { id, member, nameSealed, isVoting: true, isCreator: false, signature: null };
    });
    await insertMembers(ctx.db, each, { members, now: 0 });
  }
  await deleteMembers(ctx.db, business, [leaves]);
  await setVotingRights(ctx.db, business, []);
  const rows = await ctx.db.query<{ place: string }>(
    sql`select concat_ws(' ', business, member, is_voting) as place from business_member`,
  );
  const places = [`${business} ${stays} f`, `${other} ${leaves} t`, `${other} ${stays} t`];
  assert.deepEqual(rows.map(({ place }) => place).toSorted(), places);
});

await test("an event makes a deployed business due, and watched blocks stay watched", async () => {
  const statuses = ["active", "suspended", "moved", "deploying", "lapsed"];
  await insertBusinesses(5);
  const addresses = statuses.map((_, at) => addressOf(at + 1));
  await ctx.db.query(
    sql`update business set status = (${statuses}::text[])[right(address, 1)::int] where address = any(${addresses})`,
  );
  let isWoken = false;
  const wake = (): void => void (isWoken = true);
  const unsubscribe = await ctx.notifications.subscribe(rosterChannel, wake);
  await saveWatched(ctx.db, { addresses, block: 20 });
  assert.deepEqual(await takeDue(), addresses.slice(0, 3));
  await until("whoever looks is woken", async () => (isWoken ? true : null));
  unsubscribe();
  await saveWatched(ctx.db, { addresses: [], block: 10 });
  assert.equal(await findWatchedBlock(ctx.db), 20);
  await ctx.db.transaction(async (tx) => saveUnread(tx, 21));
  assert.deepEqual(await takeDue(), addresses.slice(0, 3));
  await ctx.db.query(sql`update business set status = 'active'`);
});

await test("a business with an event is read before those that are only swept", async () => {
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
    await lookAtOpen(ctx);
    assert.ok((await claim()).includes(urgent), urgent);
  }
});

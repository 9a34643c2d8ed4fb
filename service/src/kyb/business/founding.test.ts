import assert from "node:assert/strict";
import { test } from "node:test";
import { openDb, sql } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import { forgetLapsed } from "./founding.ts";
import { deleteLapsed } from "./founding-store.ts";

const day = 86_400;
const now = 100 * day;

async function openFoundings(lapsed: number) {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await openTestDatabase());
  const db = stack.use(openDb({ ...database.connection, connections: 1 }));
  await db.query(sql`
    with founded as (
      insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      select '0x' || lpad(to_hex(n), 40, '0'), 'live', 'Muster AG', 'lapsed', '', n, n, decode(repeat('00', 32), 'hex'),
        '', 0 from generate_series(1, ${lapsed}) as n
      returning address)
    insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
    select gen_random_uuid(), address, address, '', true, true, 0 from founded`);
  await db.query(sql`
    update business set invitation_deadline = case when invitation_id = '3' then ${now - 30 * day - 1}::bigint else ${now - 30 * day}::bigint end
    where invitation_id in ('1', '2', '3')`);
  const disposal = stack.move();
  return { db, [Symbol.asyncDispose]: async () => disposal.disposeAsync() };
}

test("foundings that lapsed 30 days ago are forgotten a batch at a time", async () => {
  await using foundings = await openFoundings(1202);
  const { db } = foundings;
  const before = db.callsTotal;
  await forgetLapsed({ db, clock: { now: () => now, nowMs: () => now * 1000 } });
  assert.equal(db.callsTotal - before, 3);
  assert.deepEqual(
    await db.query(sql`
      select invitation_id from business join business_member on business = address order by invitation_id`),
    [{ invitation_id: "1" }, { invitation_id: "2" }],
  );
});

test("the deletion of foundings scans no table", async () => {
  await using foundings = await openFoundings(3);
  const read = await foundings.db.transaction(async (tx) => {
    await tx.query(sql`set local enable_seqscan = off`);
    assert.equal(await deleteLapsed(tx, now, 10), 3);
    return tx.query(sql`
      select relname from pg_stat_xact_user_tables where seq_scan > 0 order by relname`);
  });
  assert.deepEqual(read, []);
});

test("whatever refers to a business is found by an index that begins with it", async () => {
  await using foundings = await openFoundings(0);
  const searched = await foundings.db.query(sql`
    select conrelid::regclass::text as "table" from pg_constraint
    where contype = 'f' and confrelid = 'business'::regclass and not exists (
      select from pg_index where indrelid = conrelid and indkey[0] = conkey[1] and indpred is null)`);
  assert.deepEqual(searched, []);
});

// How much is read to find the credentials that wait for the chain.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDb, type Queryable, sql } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { hasWaitingRoots, lockUnattested } from "./batch-store.ts";
import * as issuers from "./issuer-store.ts";

const operator = `0x${"11".repeat(20)}` as const;
const now = 1000;
const limit = 20;
const waiting = 2000;

await using database = await openTestDatabase();
await using db = openDb({ ...database.connection, connections: 2 });

async function addIssuer(name: string, roleGrantedAt: number | null): Promise<void> {
  await db.query(sql`
    insert into issuer (id, kind, name, address, environment, created_at, role_requested_at, role_granted_at, role_account)
    values (md5(${name})::uuid, 'api', ${name}, '0x' || left(encode(sha256(${name}::text::bytea), 'hex'), 40), 'live', 0, 0,
      ${roleGrantedAt}, ${operator})`);
}

/** @param from the time of the first; each further one is a second later */
async function addWaiting(name: string, from: number, count: number): Promise<void> {
  await db.query(sql`
    insert into credential (id, issuer_id, environment, user_address, document, root, tree, created_at, expires_at)
    select gen_random_uuid(), md5(${name})::uuid, 'live', '0x' || left(encode(sha256(${name}::text::bytea), 'hex'), 40), 'EMAIL',
      sha256((${name} || n)::bytea), '', ${from}::bigint + n, 1e10
    from generate_series(1, ${count}::int) as n`);
  await db.query(sql`analyze issuer, credential`);
}

/** How many rows and index entries of credentials the work reads. */
async function countReads(work: (tx: Queryable) => Promise<unknown>): Promise<number> {
  return db.transaction(async (tx) => {
    const earlier = await readsOf(tx);
    await work(tx);
    return (await readsOf(tx)) - earlier;
  });
}

async function readsOf(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ reads: number }>(sql`
    select sum(pg_stat_get_xact_tuples_returned(read))::int as reads from (
      select 'credential'::regclass as read
      union all select indexrelid from pg_index where indrelid = 'credential'::regclass) as each`);
  return row?.reads ?? 0;
}

const looksForWork = async (tx: Queryable): Promise<boolean> =>
  hasWaitingRoots(tx, { now, operator });

await test("nothing is read of issuers that have no role yet", async () => {
  await addIssuer("without", null);
  await addWaiting("without", 0, waiting);
  const reads = await countReads(async (tx) => {
    assert.equal(await looksForWork(tx), false);
    assert.deepEqual(await lockUnattested(tx, { limit, now }), []);
  });
  assert.equal(reads, 0);
});

await test("a batch takes the oldest roots, whichever issuers they are of", async () => {
  await addIssuer("with", 1);
  await addWaiting("with", 10, waiting);
  await addIssuer("another", 1);
  await addWaiting("another", 0, limit);
  const reads = await countReads(async (tx) => {
    assert.equal(await looksForWork(tx), true);
    const found = await lockUnattested(tx, { limit, now });
    assert.deepEqual(
      found.map(({ roots }) => roots.length).toSorted((a, b) => a - b),
      [limit / 4, (limit / 4) * 3],
    );
  });
  assert.ok(reads <= 4 * limit, `${reads} reads`);
});

await test("roots that another process has locked are skipped", async () => {
  await db.transaction(async (tx) => {
    assert.equal((await lockUnattested(tx, { limit, now })).length, 2);
    const beside = await db.transaction(async (other) => lockUnattested(other, { limit, now }));
    assert.deepEqual(beside, []);
  });
});

await test("a distrust that the chain has is not sent, and a revert that was recorded before does not postpone a later try", async () => {
  const [{ id } = { id: "" }] = await db.query<{ id: string }>(sql`select id from issuer limit 1`);
  await issuers.distrustIssuer(db, id, 500);
  const due = async (at: number): Promise<issuers.IssuerDue | undefined> =>
    (await issuers.lockIssuersDue(db, at)).find((each) => each.id === id);
  await issuers.noteDistrustKnown(db, { id, from: 501 });
  const first = await due(now);
  assert.equal(first?.distrustedFrom, 500, "the chain has a later one");
  await issuers.noteIssuerSent(db, first, { now, operator });
  await issuers.putOffDistrust(db, { id, failures: 0, pauses: [10], now, from: 500 });
  const second = await due(now + 10);
  assert.equal(second?.distrustFailures, 1);
  await issuers.noteIssuerSent(db, second, { now, operator });
  await issuers.putOffDistrust(db, { id, failures: 0, pauses: [99], now, from: 500 });
  assert.equal((await due(now + 99))?.distrustedFrom ?? null, null, "it is under way");
  await issuers.putOffDistrust(db, { id, failures: 1, pauses: [99], now, from: 500 });
  await issuers.noteDistrustKnown(db, { id, from: 500 });
  assert.equal((await due(now + 99))?.distrustedFrom ?? null, null, "the chain has it");
});

await test("a role has been there since it was granted first", async () => {
  const grantedAt = sql`select id, role_granted_at as at from issuer where name = 'with'`;
  const [before] = await db.query<{ id: string; at: number }>(grantedAt);
  assert.ok(before !== undefined);
  await issuers.grantRoles(db, [{ id: before.id, at: before.at + 9, failures: 0 }]);
  assert.deepEqual(await db.query(grantedAt), [before]);
});

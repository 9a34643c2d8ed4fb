// The linking of many entries at once, as after a transaction that was open for long.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chainAll } from "../../../../test/linked-audit.ts";
import { createRandom } from "../cryptography/random.ts";
import { openInstallationKeys } from "../cryptography/installation-keys.ts";
import { createSeal } from "../cryptography/seal.ts";
import { openDb, type Queryable, sql } from "../database/db.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { createAudit } from "./audit.ts";
import type { AuditContext } from "./audit-chain.ts";

const transactions = 20;
const entriesOfEach = 150;
/** One transaction links so many. */
const batch = 1000;
const now = 1_700_000_000;

await using database = await openTestDatabase();
await using db = openDb({ ...database.connection, connections: 2 });
const clock = { now: () => now, nowMs: () => now * 1000 };
const seal = createSeal(["a1".repeat(32)]);
const keys = await openInstallationKeys({ db, seal, clock, random: createRandom() });
const ctx: AuditContext = { db, clock, keys };

/** Rows and index entries of the trail that this session has read so far. */
async function countReads(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ reads: number }>(sql`
    select sum(pg_stat_get_xact_tuples_returned(read))::int as reads from (
      select 'audit_entry'::regclass as read
      union all select indexrelid from pg_index where indrelid = 'audit_entry'::regclass) as each`);
  return row?.reads ?? 0;
}

await test("of many entries that wait each batch reads those that it links, in the order of their transactions", async () => {
  const audit = createAudit(ctx);
  await audit.record(db, { actor: "system", action: "test.run", subject: "first" });
  await chainAll(ctx);
  for (let index = 0; index < transactions; index += 1)
    await db.query(sql`
      insert into audit_entry (at, actor, action, subject)
      select ${now}, 'system', 'test.run', n::text from generate_series(1, ${entriesOfEach}::int) as n`);
  await db.query(sql`analyze audit_entry, audit_link`);
  const reads: number[] = [];
  const transaction = async <T>(work: (tx: Queryable) => Promise<T>): Promise<T> =>
    db.transaction(async (tx) => {
      const before = await countReads(tx);
      const done = await work(tx);
      reads.push((await countReads(tx)) - before);
      return done;
    });
  await chainAll({ ...ctx, db: { ...db, transaction } });
  // A batch may begin and end within a transaction, and PostgreSQL sorts the entries of a few at a time.
  for (const each of reads)
    assert.ok(each <= batch + 2 * entriesOfEach, `a batch reads ${each} entries`);
  const report = await audit.verify();
  assert.deepEqual([report.checked, report.faults], [1 + transactions * entriesOfEach, []]);
  const turned = await db.query(sql`
    select from (
      select tx, lag(tx) over (order by position) as before from audit_link join audit_entry on id = entry_id) as linked
    where tx < before`);
  assert.equal(turned.length, 0);
});

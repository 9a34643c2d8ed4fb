import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, beforeEach, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { type Audit, chainAudit, createAudit, noteRestore, purgeAudit } from "./audit.ts";
import { until } from "../../../../test/patience.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { chainAll } from "../../../../test/linked-audit.ts";
import { type AuditContext, linkHash, sealLink } from "./audit-chain.ts";
import type { EntryRow } from "./audit-store.ts";
import { advisoryLocks } from "../database/advisory-locks.ts";
import { type Db, openDb, type Queryable, sql } from "../database/db.ts";
import { openInstallationKeys } from "../cryptography/installation-keys.ts";
import { createRandom } from "../cryptography/random.ts";
import { createSeal } from "../cryptography/seal.ts";
import { openTestDatabase } from "../database/test-database.ts";

const database = await openTestDatabase();
const connect = (): Db => openDb({ ...database.connection, connections: 10 });
const [one, two] = [connect(), connect()];
after(async () => {
  await one.close();
  await two.close();
  await database[Symbol.asyncDispose]();
});

let now = 1_700_000_000;
const clock = { now: () => now, nowMs: () => now * 1000 };
const seal = createSeal(["a1".repeat(32)]);
const keys = await openInstallationKeys({ db: one, seal, clock, random: createRandom() });
const ctx: AuditContext = { db: one, clock, keys };
const other: AuditContext = { ...ctx, db: two };
const audit: Audit = createAudit(ctx);

beforeEach(async () => {
  now = 1_700_000_000;
  await one.query(sql`truncate audit_entry, audit_link restart identity`);
  await one.query(sql`delete from audit_chain`);
  await one.query(sql`insert into audit_chain default values`);
});

async function record(tx: Queryable, subject: string): Promise<void> {
  await audit.record(tx, {
    actor: "system",
    action: "test.run",
    subject,
    details: { b: 1, aa: 2 },
  });
}

async function countOf(statement: ReturnType<typeof sql>): Promise<number> {
  const [row] = await one.query<{ count: number }>(statement);
  return row?.count ?? 0;
}

async function makeChain(length: number): Promise<void> {
  for (let index = 1; index <= length; index += 1) await record(one, `subject ${index}`);
  await chainAll(ctx);
}

async function faultsOf(): Promise<[string, number | null, number | null][]> {
  const report = await audit.verify();
  assert.equal(report.isIntact, report.faults.length === 0);
  return report.faults.map((each) => [each.kind, each.position, each.entryId]);
}

test("an untouched trail is intact", async () => {
  await makeChain(5);
  const report = await audit.verify();
  assert.deepEqual(
    { ...report, head: report.head.position },
    {
      isIntact: true,
      checked: 5,
      faults: [],
      head: 5,
      unsealed: { count: 0, oldestAgeSeconds: 0 },
    },
  );
  assert.match(report.head.hash, /^[0-9a-f]{64}$/);
});

test("an empty trail is intact", async () => {
  assert.equal(await chainAudit(ctx), 0);
  assert.deepEqual(await faultsOf(), []);
});

test("a beginning that is not empty is nobody's, and reported", async () => {
  await one.query(sql`
    update audit_chain set head_hash = sha256('x'), checkpoint_hash = sha256('x')`);
  assert.deepEqual(await faultsOf(), [
    ["checkpoint_wrong", 0, null],
    ["head_wrong", 0, null],
  ]);
  await assert.rejects(audit.head(one), /forged/);
  const empty = Buffer.alloc(32);
  await one.query(sql`
    update audit_chain set head_position = 7, head_hash = ${empty}, checkpoint_position = 7, checkpoint_hash = ${empty}`);
  assert.deepEqual(await faultsOf(), [
    ["checkpoint_wrong", 7, null],
    ["head_wrong", 7, null],
  ]);
  await assert.rejects(audit.head(one), /forged/);
});

test("a link's hash covers the one before it, its place and its entry, in a form that never changes", () => {
  const entry = {
    id: 7,
    at: 1_700_000_000,
    actor: "a",
    action: "b.c",
    subject: "d",
    details: "{}",
  };
  const canonical = `["svc-audit-v1","${"01".repeat(32)}",5,7,1700000000,"a","b.c","d","{}"]`;
  assert.deepEqual(
    linkHash({ position: 4, hash: Buffer.alloc(32, 1) }, entry),
    createHash("sha256").update(canonical).digest(),
  );
});

test("what is linked while the trail is verified makes no fault", async () => {
  await makeChain(2);
  const linking: AuditContext = { ...ctx, db: { ...one, transaction: linkAfterTheHead } };
  const report = await createAudit(linking).verify();
  assert.deepEqual([report.checked, report.faults], [2, []]);
  assert.equal((await audit.verify()).checked, 3);
});

/** A transaction during which an entry is linked, once the head was read. */
async function linkAfterTheHead<T>(work: (tx: Queryable) => Promise<T>): Promise<T> {
  return one.transaction(async (tx) =>
    work({
      async query<Row extends object>(statement: ReturnType<typeof sql>) {
        const rows = await tx.query<Row>(statement);
        if (statement.text.includes("head_seal")) {
          await record(two, "meanwhile");
          await until("it is linked", async () => ((await chainAudit(other)) === 1 ? true : null));
        }
        return rows;
      },
    }),
  );
}

test("an entry of a transaction that was rolled back is never linked", async () => {
  await record(one, "before");
  const undone = one.transaction(async (tx) => {
    await record(tx, "undone");
    throw new Error("undo");
  });
  await assert.rejects(undone, /undo/);
  await record(one, "after");
  await chainAll(ctx);
  assert.deepEqual(
    await one.query(sql`select position, entry_id from audit_link order by position`),
    [
      { position: 1, entry_id: 1 },
      { position: 2, entry_id: 3 },
    ],
  );
  assert.deepEqual(await faultsOf(), []);
});

test("an entry that commits after higher ids is linked once it does", async () => {
  const { promise: hold, resolve: release } = Promise.withResolvers<void>();
  const { promise: written, resolve: onWritten } = Promise.withResolvers<void>();
  await record(one, "before");
  const slow = two.transaction(async (tx) => {
    await record(tx, "slow");
    onWritten();
    await hold;
  });
  await written;
  try {
    await record(one, "fast");
    await until("what was before is linked", async () => (await chainAudit(ctx)) > 0 || null);
    const before = one.callsTotal;
    assert.equal(await chainAudit(ctx), 0);
    assert.equal(one.callsTotal - before, 1, "nothing to link was found");
    const waiting = await audit.verify();
    assert.deepEqual([waiting.isIntact, waiting.unsealed.count], [true, 1]);
  } finally {
    release();
  }
  await slow;
  const ended = await audit.verify();
  assert.deepEqual([ended.isIntact, ended.unsealed.count], [true, 2]);
  await chainAll(ctx);
  assert.deepEqual(await one.query(sql`select entry_id from audit_link order by position`), [
    { entry_id: 1 },
    { entry_id: 2 },
    { entry_id: 3 },
  ]);
  assert.deepEqual(await faultsOf(), []);
});

test("entries of 20 transactions that commit in any order are each linked once by two processes", async () => {
  const writing = new AbortController();
  const chaining = [ctx, other].map(async (each) => {
    while (!writing.signal.aborted) {
      await chainAudit(each);
      await delay(1);
    }
  });
  const writers = Array.from({ length: 20 }, async (_, index) => {
    const db = index % 2 === 0 ? one : two;
    for (let round = 0; round < 5; round += 1) {
      await db
        .transaction(async (tx) => {
          await record(tx, `${index}.${round}.a`);
          await delay(Math.random() * 15);
          await record(tx, `${index}.${round}.b`);
          if (Math.random() < 0.2) throw new Error("undo");
        })
        .catch(() => undefined);
    }
  });
  await Promise.all(writers);
  writing.abort();
  await Promise.all(chaining);
  await chainAll(ctx);
  const entries = await countOf(sql`select count(*) from audit_entry`);
  const report = await audit.verify();
  assert.deepEqual([report.checked, report.head.position, report.faults], [entries, entries, []]);
});

test("more entries than one transaction links are all linked, and of as many faults 100 are told", async () => {
  await one.query(sql`
    insert into audit_entry (at, actor, action, subject)
    select ${now}, 'system', 'test.run', n::text from generate_series(1, 2500) as n`);
  await chainAll(ctx);
  const report = await audit.verify();
  assert.deepEqual([report.checked, report.faults], [2500, []]);
  await one.query(sql`update audit_entry set actor = 'nobody'`);
  assert.equal((await faultsOf()).length, 100);
});

test("what is linked is not looked at again, also where the last batch was full", async () => {
  await makeChain(1);
  await one.query(sql`
    insert into audit_entry (at, actor, action, subject)
    select ${now}, 'system', 'test.run', n::text from generate_series(1, 1000) as n`);
  // Transactions of other tests on the same server hold them back for a moment.
  await until("the full batch is linked", async () =>
    (await chainAudit(ctx)) === 1000 ? true : null,
  );
  const looked = sql`select count(*) from audit_entry where tx >= (select horizon from audit_chain)`;
  assert.equal(await countOf(looked), 0);
});

test("an idle run costs one database call", async () => {
  await makeChain(1);
  const before = one.callsTotal;
  assert.equal(await chainAudit(ctx), 0);
  assert.equal(one.callsTotal - before, 1);
});

test("while one process links entries, another leaves it to that", async () => {
  await record(one, "waiting");
  await two.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.auditChain})`);
    assert.equal(await chainAudit(ctx), 0);
  });
});

const edits: [column: string, change: ReturnType<typeof sql>][] = [
  ["time", sql`update audit_entry set at = at - 1 where id = 3`],
  ["actor", sql`update audit_entry set actor = 'nobody' where id = 3`],
  ["action", sql`update audit_entry set action = 'nothing' where id = 3`],
  ["subject", sql`update audit_entry set subject = 'else' where id = 3`],
  ["details", sql`update audit_entry set details = '{"b": 1, "aa": 3}' where id = 3`],
];

for (const [column, change] of edits) {
  test(`an edited ${column} is reported`, async () => {
    await makeChain(5);
    await one.query(change);
    assert.deepEqual(await faultsOf(), [["entry_edited", 3, 3]]);
  });
}

test("a deleted entry is reported", async () => {
  await makeChain(5);
  await one.query(sql`delete from audit_entry where id = 3`);
  assert.deepEqual(await faultsOf(), [["entry_deleted", 3, 3]]);
});

test("an entry that was deleted together with its link is reported", async () => {
  await makeChain(5);
  await one.query(sql`delete from audit_link where position = 3`);
  await one.query(sql`delete from audit_entry where id = 3`);
  assert.deepEqual(await faultsOf(), [["link_missing", 3, null]]);
});

test("closing the gap behind a deletion breaks the links after it", async () => {
  await makeChain(5);
  await one.query(sql`delete from audit_link where position = 3`);
  await one.query(sql`delete from audit_entry where id = 3`);
  await one.query(sql`update audit_link set position = position - 1 where position > 3`);
  const kinds = (await faultsOf()).map(([kind]) => kind);
  assert.deepEqual(kinds, ["link_forged", "link_forged", "head_wrong"]);
});

test("a link without the service's seal is reported", async () => {
  await makeChain(5);
  await one.query(sql`update audit_link set hash = sha256('x') where position = 3`);
  assert.deepEqual((await faultsOf())[0], ["link_forged", 3, 3]);
});

test("the head is the newest link, and before any the empty beginning", async () => {
  assert.deepEqual(await audit.head(one), { position: 0, hash: Buffer.alloc(32) });
  await makeChain(5);
  const [newest] = await one.query<{ hash: Buffer }>(
    sql`select hash from audit_link where position = 5`,
  );
  assert.deepEqual(await audit.head(one), { position: 5, hash: newest?.hash });
});

test("newest entries that were cut off are reported", async () => {
  await makeChain(5);
  await one.query(sql`delete from audit_link where position > 3`);
  await one.query(sql`delete from audit_entry where id > 3`);
  assert.deepEqual(await faultsOf(), [["head_wrong", 5, null]]);
  await one.query(sql`
    update audit_chain set head_position = 3, head_hash = hash, head_seal = seal
    from audit_link where position = 3`);
  assert.deepEqual(await faultsOf(), [["head_wrong", 3, null]]);
  // A head of the service's own, but of another trail.
  const another = { position: 3, hash: Buffer.alloc(32, 1) };
  const anotherSeal = sealLink(ctx, "head", another);
  await one.query(
    sql`update audit_chain set head_hash = ${another.hash}, head_seal = ${anotherSeal}`,
  );
  assert.deepEqual(await faultsOf(), [["head_wrong", 3, null]]);
  await one.query(sql`update audit_chain set head_seal = sha256('x')`);
  await record(one, "next");
  await assert.rejects(chainAll(ctx), /forged/);
  await assert.rejects(audit.head(one), /forged/);
});

test("oldest entries that were cut off are reported", async () => {
  await makeChain(5);
  await one.query(sql`delete from audit_link where position < 3`);
  await one.query(sql`delete from audit_entry where id < 3`);
  assert.deepEqual(await faultsOf(), [["link_missing", 1, null]]);
  await one.query(sql`
    update audit_chain set checkpoint_position = 2, checkpoint_hash = sha256('x'), checkpoint_seal = sha256('y')`);
  assert.deepEqual((await faultsOf())[0], ["checkpoint_wrong", 2, null]);
});

test("an entry put into the middle is reported, linked or not", async () => {
  await makeChain(2);
  now += 30 * 86_400;
  await one.query(sql`select setval('audit_entry_id_seq', 10)`);
  await makeChain(2);
  await one.query(sql`
    insert into audit_entry (id, at, actor, action, subject, tx) overriding system value
    values (5, ${now - 3600}, 'system', 'late', 'x', '1'), (6, ${now - 3601}, 'system', 'made.up', 'x', '1')`);
  const both = [5, 6].map((id) => ["entry_inserted", null, id]);
  assert.deepEqual(await faultsOf(), both);
  await one.query(sql`update audit_entry set tx = pg_current_xact_id() where id in (5, 6)`);
  await chainAll(ctx);
  assert.deepEqual(await faultsOf(), [["entry_inserted", 6, 6]]);
});

test("an entry that was linked before the first one is reported", async () => {
  await makeChain(2);
  await one.query(sql`
    insert into audit_entry (id, at, actor, action, subject, tx) overriding system value
    values (50, ${now}, 'system', 'made.up', 'x', '1')`);
  const forged = Buffer.alloc(32);
  await one.query(sql`
    insert into audit_link (position, entry_id, hash, seal, sealed_at)
    values (0, 50, ${forged}, ${forged}, ${now})`);
  const kinds = (await faultsOf()).map(([kind, , entryId]) => [kind, entryId]);
  assert.ok(kinds.some(([kind, entryId]) => kind === "link_forged" && entryId === 50));
});

test("the unsealed tail is reported with its age", async () => {
  await makeChain(2);
  await record(one, "first of the tail");
  now += 40;
  await record(one, "second of the tail");
  now += 2;
  const report = await audit.verify();
  assert.deepEqual([report.isIntact, report.unsealed], [true, { count: 2, oldestAgeSeconds: 42 }]);
});

test("a database that was restored from a dump goes on with its chain", async () => {
  await restoreFromDump();
  await record(one, "new");
  await chainAll(ctx);
  await record(one, "newer");
  await chainAll(ctx);
  const report = await audit.verify();
  assert.deepEqual([report.checked, report.faults, report.unsealed.count], [6, [], 0]);
});

test("a process that starts on a restored database does not report what it records as inserted", async () => {
  await restoreFromDump();
  await noteRestore(one);
  await record(one, "new");
  const report = await audit.verify();
  assert.deepEqual([report.checked, report.faults, report.unsealed.count], [3, [], 2]);
});

test("what a restored database has not linked yet is linked, whether or not anything is recorded", async () => {
  await restoreFromDump();
  await noteRestore(one);
  await chainAll(ctx);
  assert.equal((await audit.verify()).checked, 4);
});

async function restoreFromDump(): Promise<void> {
  await makeChain(3);
  // A dump keeps the columns; the new cluster counts its transactions from the beginning.
  await one.query(sql`update audit_entry set tx = (tx::text::bigint + 1000000000)::text::xid8`);
  await one.query(sql`
    insert into audit_entry (at, actor, action, subject, tx)
    values (${now}, 'system', 'test.run', 'unlinked in the dump', '2000000000')`);
  await one.query(sql`update audit_chain set horizon = '1999999999'`);
}

test("entries past their retention are removed and the rest stays verifiable", async () => {
  await makeChain(3);
  const firstAt = now;
  now += 86_400;
  await makeChain(4);
  assert.equal(await purgeAudit(ctx, { before: firstAt }), 0);
  assert.equal(await purgeAudit(ctx, { before: now }), 3);
  assert.equal(await countOf(sql`select count(*) from audit_entry`), 4);
  assert.deepEqual(await faultsOf(), []);
  await one.query(sql`
    insert into audit_link (position, entry_id, hash, seal, sealed_at) values (1, 99, sha256('x'), sha256('x'), 0)`);
  assert.deepEqual((await faultsOf())[0], ["link_missing", 4, null]);
  await one.query(sql`delete from audit_link where position = 1`);
  await makeChain(1);
  assert.equal(await purgeAudit(ctx, { before: now + 1 }), 5);
  const empty = await audit.verify();
  assert.deepEqual([empty.checked, empty.head.position, empty.faults], [0, 8, []]);
  await makeChain(2);
  const report = await audit.verify();
  assert.deepEqual([report.checked, report.head.position, report.faults], [2, 10, []]);
  await one.query(sql`update audit_entry set actor = 'nobody' where subject = 'subject 2'`);
  assert.equal((await faultsOf())[0]?.[0], "entry_edited");
});

test("a forged age does not make the service remove an entry", async () => {
  await makeChain(3);
  await one.query(sql`update audit_entry set at = 0`);
  await assert.rejects(purgeAudit(ctx, { before: now - 86_400 }), /broken/);
  assert.equal(await countOf(sql`select count(*) from audit_entry`), 3);
});

test("a long chain is removed in batches", async () => {
  await one.query(sql`
    insert into audit_entry (at, actor, action, subject)
    select ${now}, 'system', 'test.run', n::text from generate_series(1, 2100) as n`);
  await chainAll(ctx);
  assert.equal(await purgeAudit(ctx, { before: now + 1 }), 2100);
  assert.deepEqual(await faultsOf(), []);
});

test("a removal waits for who is at the chain", async () => {
  await makeChain(2);
  const removed = await two.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.auditChain})`);
    const removing = purgeAudit(ctx, { before: now + 1 });
    await untilBlocked(two, tx, [removing]);
    return { removing };
  });
  assert.equal(await removed.removing, 2);
});

test("the service neither seals a checkpoint that it did not set, nor removes a link that it did not seal", async () => {
  await makeChain(5);
  await one.query(sql`
    with cut as (delete from audit_link where position <= 2 returning position, entry_id, hash),
      gone as (delete from audit_entry using cut where id = cut.entry_id)
    update audit_chain set checkpoint_position = 2, checkpoint_hash = cut.hash from cut where cut.position = 2`);
  await assert.rejects(purgeAudit(ctx, { before: now + 1 }), /forged/);
  await record(one, "later");
  await assert.rejects(chainAll(ctx), /forged/);
  assert.deepEqual((await faultsOf())[0], ["checkpoint_wrong", 2, null]);
});

test("an entry whose age and link were forged together is not removed by the service", async () => {
  await makeChain(1);
  await one.query(sql`update audit_entry set at = 0`);
  const [entry] = await one.query<EntryRow>(sql`
    select id, at, actor, action, subject, details::text as details from audit_entry`);
  assert.ok(entry);
  const hash = linkHash({ position: 0, hash: Buffer.alloc(32) }, entry);
  await one.query(sql`update audit_link set hash = ${hash}`);
  await assert.rejects(purgeAudit(ctx, { before: now - 86_400 }), /broken/);
  assert.equal(await countOf(sql`select count(*) from audit_entry`), 1);
});

// What race tests wait for: that a call is blocked, not counting one that has got its lock, and that writers end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDb, sql } from "../../service/src/platform/database/db.ts";
import { openTestDatabase } from "../../service/src/platform/database/test-database.ts";
import { listBlocked, untilBlocked, untilWritersEnd } from "../lock-waits.ts";

await using database = await openTestDatabase({ migrated: false });
await using db = openDb({ ...database.connection, connections: 3 });

await db.query(sql`create table held (id int primary key)`);
await db.query(sql`insert into held values (1)`);

await test("a session that has its lock and has not woken up yet does not wait", async () => {
  const lock = sql`select pg_backend_pid() as pid from held for update`;
  let pid = 0;
  const { waiting } = await db.transaction(async (tx) => {
    await tx.query(lock);
    const begun = db.query(lock);
    await untilBlocked(db, tx, [begun]);
    const [session] = await db.query<{ pid: number }>(sql`
      select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`);
    assert.ok(session);
    ({ pid } = session);
    process.kill(pid, "SIGSTOP");
    return { waiting: begun };
  });
  try {
    assert.deepEqual(await listBlocked(db), []);
  } finally {
    process.kill(pid, "SIGCONT");
  }
  await waiting;
});

await test("whoever was to wait and ends instead is not waited for", async () => {
  const waiting = db.transaction(async (tx) => {
    const lock = sql`select from held for update`;
    await tx.query(lock);
    await untilBlocked(db, tx, [db.query(lock), db.query(sql`select from held`)]);
  });
  await assert.rejects(waiting, /of 2 that were to wait 1 ended instead/);
});

await test("writers have ended once whoever held a row is done, though others write by then", async () => {
  const lock = sql`select from held where id = 1 for update`;
  let isOver = false;
  const { waiting } = await db.transaction(async (tx) => {
    await tx.query(lock);
    const begun = untilWritersEnd(db).then(() => isOver);
    // Ten queries of the same server take longer than its first look.
    for (let look = 0; look < 10; look++) await listBlocked(db);
    isOver = true;
    return { waiting: begun };
  });
  await db.transaction(async (tx) => {
    await tx.query(lock);
    assert.equal(await waiting, true);
  });
});

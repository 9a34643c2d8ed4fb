import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { sqlState } from "./database-fault.ts";
import { openDb, type Queryable, sql, type Statement } from "./db.ts";
import { openTestDatabase } from "./test-database.ts";

const database = await openTestDatabase({ migrated: false });
/** One connection: what a transaction leaves behind on it is met by the next. */
const db = openDb({ ...database.connection, connections: 1 });
await db.query(sql`create table note (id int primary key, data jsonb)`);
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await db.query(sql`truncate note`);
});

const insert = async (tx: Queryable, id: number, data: unknown = null): Promise<unknown> =>
  tx.query(sql`insert into note values (${id}, ${data})`);

const listNotes = async (): Promise<number[]> =>
  (await db.query<{ id: number }>(sql`select id from note order by id`)).map((row) => row.id);

const unnamed = (id: number): Statement => ({
  name: "",
  text: "insert into note values ($1) returning id",
  values: [id],
});

const circular: Record<string, unknown> = {};
circular["self"] = circular;

test("a transaction begins with its first statement, without a round trip for it", async () => {
  const earlier = db.callsTotal;
  const isIn = await db.transaction(async (tx) => {
    await insert(tx, 1);
    return tx.query(sql`select now() < statement_timestamp() as is_in`);
  });
  assert.equal(db.callsTotal - earlier, 3);
  assert.deepEqual(isIn, [{ is_in: true }]);
});

test("a transaction that asks the database for nothing is none", async () => {
  const earlier = db.callsTotal;
  assert.equal(await db.transaction(async () => "done"), "done");
  await assert.rejects(
    db.transaction(async () => Promise.reject(new Error("no"))),
    /^Error: no$/,
  );
  assert.equal(db.callsTotal, earlier);
});

test("a first statement that fails takes back what follows it, and leaves the connection usable", async () => {
  await insert(db, 1);
  const hiding = db.transaction(async (tx) => {
    await insert(tx, 1).catch(() => undefined);
    await insert(tx, 2).catch(() => undefined);
  });
  await assert.rejects(hiding, /was rolled back/);
  await db.transaction(async (tx) => insert(tx, 3));
  assert.deepEqual(await listNotes(), [1, 3]);
});

test("a first statement that PostgreSQL cannot read fails the same way each time", async () => {
  for (let times = 0; times < 2; times += 1)
    await assert.rejects(
      db.transaction(async (tx) => tx.query(sql`select from nowhere`)),
      (error) => sqlState(error) === "42P01",
    );
});

test("beside or after a first statement that cannot be sent, nothing is carried out", async () => {
  for (const isBeside of [true, false]) {
    const work = db.transaction(async (tx) => {
      const first = insert(tx, 1, circular).catch(() => undefined);
      if (!isBeside) await first;
      await assert.rejects(insert(tx, 2), /circular/);
    });
    await assert.rejects(work, /circular/);
    await assert.rejects(
      db.transaction(async (tx) => insert(tx, 3, circular)),
      /circular/,
    );
  }
  assert.deepEqual(await listNotes(), []);
});

test("statements that are asked for at once are all in the transaction", async () => {
  const failing = db.transaction(async (tx) => {
    await Promise.all([insert(tx, 1), insert(tx, 2), insert(tx, 3)]);
    throw new Error("no");
  });
  await assert.rejects(failing, /^Error: no$/);
  assert.deepEqual(await listNotes(), []);
});

test("what work still asks for when its transaction has ended is refused, and changes nothing", async () => {
  const isThrown = Promise.withResolvers<void>();
  let late: Promise<unknown> = Promise.resolve();
  const failing = db.transaction(async (tx) => {
    await insert(tx, 1);
    late = isThrown.promise.then(async () => insert(tx, 2));
    throw new Error("no");
  });
  await assert.rejects(failing, /^Error: no$/);
  isThrown.resolve();
  await assert.rejects(late, /is over/);
  let used: Queryable = db;
  await db.transaction(async (tx) => {
    used = tx;
  });
  await assert.rejects(insert(used, 3), /is over/);
  assert.deepEqual(await listNotes(), []);
});

test("a first statement without a name is in the transaction", async () => {
  const failing = db.transaction(async (tx) => {
    await tx.query(unnamed(1));
    throw new Error("no");
  });
  await assert.rejects(failing, /^Error: no$/);
  assert.deepEqual(await db.transaction(async (tx) => tx.query(unnamed(2))), [{ id: 2 }]);
  assert.deepEqual(await listNotes(), [2]);
});

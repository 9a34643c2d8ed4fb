import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { Client, types } from "pg";
import { type Db, openDb, sql, sqlState } from "./db.ts";
import { PreparedQuery } from "./prepared-query.ts";
import { openTestDatabase } from "./test-database.ts";

const database = await openTestDatabase({ migrated: false });
/** One connection, so that what a statement leaves behind is met by the next. */
const db: Db = openDb({ ...database.connection, connections: 1 });
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await db.query(sql`drop table if exists item`);
  await db.query(sql`create table item (id int primary key, data bytea, tags text[], note jsonb)`);
});

const addItem = async (id: unknown, note: unknown) =>
  db.query(sql`insert into item (id, note) values (${id}, ${note})`);
const listItems = async () => db.query(sql`select id, data, tags, note from item order by id`);

test("values go and come back as what they were", async () => {
  const [data, tags, note] = [Buffer.from([0, 255]), ['a "quoted" one', "b\\,"], { a: [1, null] }];
  const added = await db.query(sql`insert into item values (${1}, ${data}, ${tags}, ${note})`);
  assert.deepEqual(added, []);
  await db.query(sql`insert into item values (${2}, ${null}, ${[]}, ${undefined})`);
  assert.deepEqual(await listItems(), [
    { id: 1, data, tags, note },
    { id: 2, data: null, tags: [], note: null },
  ]);
});

test("columns are described once a connection", async () => {
  const client = new Client(database.connection);
  await client.connect();
  let described = 0;
  const { connection } = client as unknown as {
    connection: { on(event: "rowDescription", listener: () => void): void };
  };
  connection.on("rowDescription", () => {
    described += 1;
  });
  const run = async (value: number) => {
    const query = new PreparedQuery<{ n: number }>(sql`select ${value}::int as n`, types);
    const { promise, resolve } = Promise.withResolvers<unknown>();
    query.callback = (error) => resolve(error ?? query.rows);
    client.query(query as never);
    return promise;
  };
  assert.deepEqual(await Promise.all([run(1), run(2)]), [[{ n: 1 }], [{ n: 2 }]]);
  assert.deepEqual(await run(3), [{ n: 3 }]);
  assert.equal(described, 1);
  await client.end();
});

test("a statement whose columns have changed fails, and never answers with others' values", async () => {
  const list = async () => db.query(sql`select * from item`);
  await list();
  await db.query(sql`alter table item drop column data`);
  const failed = await list().catch((error: unknown) => error);
  assert.equal(sqlState(failed), "0A000");
});

test("a statement that fails leaves its connection and itself usable", async () => {
  const states = [];
  for (const id of ["none", 1, 1, 2])
    states.push(
      await addItem(id, null).then(
        () => "ok",
        (error: unknown) => sqlState(error),
      ),
    );
  assert.deepEqual(states, ["22P02", "ok", "23505", "ok"]);
  for (let times = 0; times < 2; times += 1) {
    const failed = await db.query(sql`select from nowhere`).catch((error: unknown) => error);
    assert.equal(sqlState(failed), "42P01");
  }
  assert.equal((await listItems()).length, 2);
});

test("a value that cannot be written is refused before anything is sent", async () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  await assert.rejects(addItem(1, circular), /circular/);
  await addItem(1, {});
  assert.equal((await listItems()).length, 1);
});

test("statements that are asked for at once are answered each with its own rows", async () => {
  const asked = Array.from({ length: 50 }, (_, at) => at);
  const answers = await Promise.all(
    asked.map(async (at) =>
      at % 2 === 0
        ? db.query(sql`select ${at}::int as even`)
        : db.query(sql`select ${at}::int as odd, 'x' as more`),
    ),
  );
  assert.deepEqual(
    answers.flat(),
    asked.map((at) => (at % 2 === 0 ? { even: at } : { odd: at, more: "x" })),
  );
});

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Client, types } from "pg";
import { sqlState } from "./database-fault.ts";
import { openDb, sql, type Statement } from "./db.ts";
import { PreparedQuery } from "./prepared-query.ts";
import { openTestDatabase } from "./test-database.ts";

const database = await openTestDatabase({ migrated: false });
/** One connection for everything: what a statement leaves behind is met by the next. A pool would replace it. */
const client = new Client(database.connection);
let described = 0;

before(async () => {
  await client.connect();
  const { connection } = client as unknown as {
    connection: { on(event: "rowDescription", listener: () => void): void };
  };
  connection.on("rowDescription", () => {
    described += 1;
  });
  await run(sql`create table item (id int primary key, data bytea, tags text[], note jsonb)`);
});
after(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});

/** Answers the rows, or throws what the driver reports. */
async function run<Row extends object>(statement: Statement): Promise<Row[]> {
  const query = new PreparedQuery<Row>(statement, types);
  const { promise, resolve, reject } = Promise.withResolvers<Row[]>();
  query.callback = (error) => {
    if (error === null) resolve(query.rows);
    else reject(error instanceof Error ? error : new Error("no error"));
  };
  client.query(query as never);
  return promise;
}

async function stateOf(statement: Statement): Promise<string | null> {
  return run(statement).then(
    () => "ok",
    (error: unknown) => sqlState(error),
  );
}

const numberOf = (value: number): Statement => sql`select ${value}::int as n`;
const listItems = async (): Promise<object[]> => run(sql`select * from item order by id`);
const addItem = (id: unknown, note: unknown): Statement =>
  sql`insert into item (id, note) values (${id}, ${note})`;

test("values go and come back as what they were", async () => {
  const [data, tags, note] = [Buffer.from([0, 255]), ['a "quoted" one', "b\\,"], { a: [1, null] }];
  assert.deepEqual(await run(sql`insert into item values (${101}, ${data}, ${tags}, ${note})`), []);
  await run(sql`insert into item values (${102}, ${null}, ${[]}, ${undefined})`);
  assert.deepEqual(await listItems(), [
    { id: 101, data, tags, note },
    { id: 102, data: null, tags: [], note: null },
  ]);
  await run(sql`delete from item`);
});

test("columns are described once a connection", async () => {
  const earlier = described;
  for (const value of [1, 2, 3]) assert.deepEqual(await run(numberOf(value)), [{ n: value }]);
  assert.equal(described, earlier + 1);
});

test("a statement that fails leaves its connection and itself usable", async () => {
  const states = [];
  for (const id of ["none", 1, 1, 2]) states.push(await stateOf(addItem(id, null)));
  assert.deepEqual(states, ["22P02", "ok", "23505", "ok"]);
  for (let times = 0; times < 2; times += 1)
    assert.equal(await stateOf(sql`select from nowhere`), "42P01");
  assert.equal((await listItems()).length, 2);
  await run(sql`delete from item`);
});

test("in a transaction that has failed, statements known and new fail until it is rolled back", async () => {
  await run(numberOf(1));
  await run(sql`begin`);
  assert.equal(await stateOf(sql`select 1 / 0`), "22012");
  assert.deepEqual(
    [await stateOf(numberOf(2)), await stateOf(sql`select 2 as new`)],
    ["25P02", "25P02"],
  );
  await run(sql`rollback`);
  assert.deepEqual(await run(numberOf(3)), [{ n: 3 }]);
});

test("a value that cannot be written is refused before anything is sent", async () => {
  const circular: Record<string, unknown> = {};
  circular["self"] = circular;
  await assert.rejects(run(addItem(1, circular)), /circular/);
  await run(addItem(1, {}));
  assert.equal((await listItems()).length, 1);
  await run(sql`delete from item`);
});

test("a name stands for one statement on a connection", async () => {
  const { name, values } = sql`select 'first' as which`;
  assert.deepEqual(await run({ name, values, text: "select 'first' as which" }), [
    { which: "first" },
  ]);
  await assert.rejects(
    run({ name, values, text: "select 'second' as which" }),
    /another one on this connection/,
  );
});

test("statements that are asked for at once are answered each with its own rows", async () => {
  await using db = openDb({ ...database.connection, connections: 2 });
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

test("a statement whose columns have changed fails, and never answers with others' values", async () => {
  await listItems();
  await run(sql`alter table item drop column data`);
  await assert.rejects(listItems(), (error) => sqlState(error) === "0A000");
});

test("an error leads to whoever ran the statement", async () => {
  await using db = openDb({ ...database.connection, connections: 1 });
  const runBadly = async (): Promise<number> => {
    const rows = await db.query(sql`select from nowhere`);
    return rows.length;
  };
  const error = await runBadly().catch((fault: unknown) => fault);
  assert.match(String((error as Error).stack), /runBadly/);
});

const unreadable = (): never => {
  throw new Error("unreadable");
};

test("a value that cannot be read, and a row of other columns, fail the statement", () => {
  const fields = [{ name: "a", dataTypeID: 23 }];
  for (const [row, parse, fault] of [
    [["1"], unreadable, /unreadable/],
    [["1", "2"], String, /2 values for 1 columns/],
  ] as const) {
    const query = new PreparedQuery(sql`select 1 as a`, { getTypeParser: () => parse });
    const told: unknown[] = [];
    query.callback = (error) => told.push(error);
    query.handleRowDescription({ fields });
    query.handleDataRow({ fields: row });
    query.handleReadyForQuery();
    assert.match(String(told), fault);
  }
});

test("a statement behind a `begin` that failed is not taken for prepared", () => {
  const wire = {
    stream: { write: () => true },
    parsedStatements: {},
    submittedNamedStatements: {},
  };
  const query = new PreparedQuery(sql`select 1 as b`, types, { begins: true });
  assert.equal(query.submit(wire), null);
  assert.equal(Object.keys(wire.submittedNamedStatements).length, 1);
  query.handleError(new Error("no"), wire);
  assert.deepEqual([wire.submittedNamedStatements, query.hasBegun], [{}, false]);
});

import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, beforeEach, test } from "node:test";
import { heldBoundMs, holdTimers } from "../../../../test/held-timers.ts";
import { until } from "../../../../test/patience.ts";
import { isOutage } from "./database-fault.ts";
import { type Db, openDb, type Queryable, sql } from "./db.ts";
import { openTestDatabase } from "./test-database.ts";

const database = await openTestDatabase({ migrated: false });
/** One connection: what a transaction leaves behind on it is met by the next. */
const direct = openDb({ ...database.connection, connections: 1 });
await direct.query(sql`create table note (id int primary key)`);
const clients = new Set<Socket>();
/** What the database has answered while its answers were held back; null while they pass. */
let held: (() => void)[] | null = null;
/** Called with what a client sends, in front of the database. */
let onSent: (client: Socket) => void = () => undefined;

/** Passes it on now, or after what is held back. */
function pass(answer: () => void): void {
  if (held === null) answer();
  else held.push(answer);
}

const proxy = createServer((client) => {
  const server = connect(`${database.connection.host}/.s.PGSQL.${database.connection.port}`);
  clients.add(client);
  server.on("data", (chunk: Buffer) => pass(() => client.write(chunk)));
  server.on("close", () => pass(() => client.end()));
  client.on("data", (chunk) => {
    onSent(client);
    server.write(chunk);
  });
  client.on("close", () => server.destroy());
  for (const side of [client, server]) side.on("error", () => undefined);
});
proxy.listen(0, "127.0.0.1");
await once(proxy, "listening");

after(async () => {
  await direct.close();
  for (const client of clients) client.destroy();
  proxy.close();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await direct.query(sql`truncate note`);
  [held, onSent] = [null, () => undefined];
});

/** Through the proxy. */
async function openConnected(): Promise<Db> {
  const { port } = proxy.address() as AddressInfo;
  const there = { ...database.connection, host: "127.0.0.1", port };
  const db = openDb({ ...there, connections: 1, query_timeout: heldBoundMs });
  await db.query(sql`select 1 as one`);
  return db;
}

const insert = async (on: Queryable, id: number): Promise<unknown> =>
  on.query(sql`insert into note values (${id})`);

const listNotes = async (): Promise<number[]> =>
  (await direct.query<{ id: number }>(sql`select id from note order by id`)).map((row) => row.id);

for (const [hiding, end, fault] of [
  ["hides that", async () => Promise.resolve(), isOutage],
  ["throws something else", async () => Promise.reject(new Error("no")), /^Error: no$/],
] as const)
  test(`where a first statement is not answered in time and its work ${hiding}, what others write is kept`, async () => {
    using bound = holdTimers(heldBoundMs);
    await using db = await openConnected();
    const unanswered: (() => void)[] = (held = []);
    const failing = db.transaction(async (tx) => {
      await insert(tx, 1).catch(() => undefined);
      await end();
    });
    await until("the database has answered", async () => unanswered[0] ?? null);
    bound.pass();
    await assert.rejects(failing, fault);
    for (const answer of held.splice(0)) answer();
    held = null;
    await insert(db, 2);
    assert.deepEqual(await listNotes(), [2]);
  });

test("beside a first statement whose connection breaks, others fail for the outage too", async () => {
  await using db = await openConnected();
  onSent = (client) => client.destroy();
  const failing = db.transaction(async (tx) => Promise.all([insert(tx, 1), insert(tx, 2)]));
  await assert.rejects(failing, isOutage);
  onSent = () => undefined;
  const hiding = db.transaction(async (tx) => {
    onSent = (client) => client.destroy();
    await insert(tx, 1).catch(() => undefined);
  });
  await assert.rejects(hiding, isOutage);
  assert.deepEqual(await listNotes(), []);
});

test("a connection that the database ends before a transaction on it begins goes to nobody else", async () => {
  await using db = await openConnected();
  const [self] = await db.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  held = [];
  await direct.query(sql`select pg_terminate_backend(${self?.pid})`);
  onSent = () => {
    // The last message has arrived, the end of the connection has not.
    for (const answer of held?.splice(0) ?? []) answer();
    held = null;
  };
  const failing = db.transaction(async (tx) => insert(tx, 1));
  const next = insert(db, 2);
  await assert.rejects(failing, isOutage);
  await next;
  assert.deepEqual(await listNotes(), [2]);
});

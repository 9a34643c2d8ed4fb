import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, beforeEach, test } from "node:test";
import { heldBoundMs, holdTimers } from "../../../../test/held-timers.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { isOutage, sqlState } from "./database-fault.ts";
import { columns, type Db, openDb, sql, type Queryable, type Statement } from "./db.ts";
import { openTestDatabase } from "./test-database.ts";

const database = await openTestDatabase({ migrated: false });
const open = (connections: number): Db => openDb({ ...database.connection, connections });
const db = open(4);
await db.query(sql`create table note (id int primary key, text text not null)`);
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});
beforeEach(async () => {
  await db.query(sql`truncate note`);
});

const insert = async (tx: Queryable, id: number, text: string): Promise<unknown> =>
  tx.query(sql`insert into note values (${id}, ${text})`);

const listNotes = async (): Promise<number[]> =>
  (await db.query<{ id: number }>(sql`select id from note order by id`)).map((row) => row.id);

test("a statement is prepared once per connection, whatever its values", async () => {
  await using single = open(1);
  const find = async (id: number): Promise<unknown> =>
    single.query(sql`select text from note where id = ${id}`);
  for (let id = 0; id < 5; id += 1) await find(id);
  const rows = await single.query<{ statement: string }>(
    sql`select statement from pg_prepared_statements where statement like 'select text%'`,
  );
  assert.deepEqual(
    rows.map((row) => row.statement),
    ["select text from note where id = $1"],
  );
});

test("a value is never part of the statement", async () => {
  const hostile = "x'); drop table note; --";
  await insert(db, 1, hostile);
  assert.deepEqual(await db.query(sql`select text from note`), [{ text: hostile }]);
  assert.ok(!sql`select ${hostile}`.text.includes(hostile));
});

test("statements of one place share a name, others have their own", () => {
  const [one, two] = [1, 2].map((value) => sql`select ${value}`.name);
  assert.equal(one, two);
  assert.notEqual(one, sql`select ${1} as one`.name);
});

test("columns that statements share stand in their text, and values around them stay parameters", async () => {
  const noteColumns = columns`id, text`;
  await insert(db, 1, "a");
  const find = (least: number, text: string): Statement =>
    sql`select ${least}::int as least, ${noteColumns} from note where text = ${text}`;
  assert.equal(find(0, "a").text, "select $1::int as least, id, text from note where text = $2");
  for (const least of [7, 8])
    assert.deepEqual(await db.query(find(least, "a")), [{ least, id: 1, text: "a" }]);
});

test("integers of 8 bytes come as numbers", async () => {
  assert.deepEqual(await db.query(sql`select 1700000000000::bigint as n, null::bigint as none`), [
    { n: 1_700_000_000_000, none: null },
  ]);
});

test("bytes of a row that is kept keep no other memory alive", async () => {
  const [row] = await db.query<{ one: Buffer; many: (Buffer | null)[] }>(
    sql`select '\\xab01'::bytea as one, array['\\xcd'::bytea, null, ''] as many`,
  );
  assert.ok(row !== undefined);
  const { one, many } = row;
  assert.deepEqual(
    [one, ...many].map((each) => each?.toString("hex")),
    ["ab01", "cd", undefined, ""],
  );
  assert.deepEqual(
    [one, ...many].map((each) => each?.buffer.byteLength),
    [2, 1, undefined, 0],
  );
});

test("a transaction commits what its work did, and returns what it returned", async () => {
  const result = await db.transaction(async (tx) => {
    await insert(tx, 1, "a");
    await insert(tx, 2, "b");
    return "done";
  });
  assert.equal(result, "done");
  assert.deepEqual(await listNotes(), [1, 2]);
});

test("a transaction whose work throws changes nothing", async () => {
  const failing = db.transaction(async (tx) => {
    await insert(tx, 1, "a");
    throw new Error("no");
  });
  await assert.rejects(failing, /^Error: no$/);
  assert.deepEqual(await listNotes(), []);
});

test("two transactions that wait for each other both commit", async () => {
  await insert(db, 1, "a");
  await insert(db, 2, "a");
  const held = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  let runs = 0;
  const both = [1, 2].map(async (first, at) =>
    db.transaction(async (tx) => {
      runs += 1;
      await tx.query(sql`update note set text = text || 'b' where id = ${first}`);
      held[at]?.resolve();
      await held[1 - at]?.promise;
      await tx.query(sql`update note set text = text || 'b' where id = ${3 - first}`);
    }),
  );
  await Promise.all(both);
  assert.ok(runs > 2, "one of them ran again, or both");
  const rows = await db.query<{ text: string }>(sql`select text from note`);
  assert.deepEqual(rows, [{ text: "abb" }, { text: "abb" }]);
});

test("a statement that waits in a circle with a transaction runs again, and takes effect once", async () => {
  await insert(db, 1, "a");
  const [shut, opened] = [Promise.withResolvers<Queryable>(), Promise.withResolvers<void>()];
  const doorkeeper = db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(1)`);
    shut.resolve(tx);
    await opened.promise;
  });
  const door = await shut.promise;
  const { statement } = await db.transaction(async (tx) => {
    // Only the statement looks for a circle in time, so PostgreSQL ends it and not this one. The other half of the circle
    // is an advisory lock, which goes to whoever waits for it; a row goes to whoever is faster, the next try too.
    await tx.query(sql`set local deadlock_timeout = '1min'`);
    await tx.query(sql`update note set text = text || 'b' where id = 1`);
    const waiting = db.query(sql`
      with held as materialized (select pg_advisory_xact_lock(2)),
           door as materialized (select pg_advisory_xact_lock(1) from held)
      update note set text = text || 'c' from door where note.id = 1`);
    await untilBlocked(db, door, [waiting]);
    const closing = tx.query(sql`select pg_advisory_xact_lock(2)`);
    await untilBlocked(db, door, [waiting, closing]);
    opened.resolve();
    await closing;
    return { statement: waiting };
  });
  await Promise.all([statement, doorkeeper]);
  const rows = await db.query<{ text: string }>(sql`select text from note`);
  assert.deepEqual(rows, [{ text: "abc" }]);
});

const findAll = async (on: Queryable): Promise<unknown> =>
  on.query(sql`select * from changing order by id`);

test("a table may get another column while every connection works with it", async () => {
  await using busy = open(4);
  await db.query(sql`create table changing (id int primary key)`);
  await db.query(sql`insert into changing values (1)`);
  const arrived = Promise.withResolvers<void>();
  let count = 0;
  const findTogether = async (tx: Queryable): Promise<void> => {
    await findAll(tx);
    count += 1;
    if (count === 4) arrived.resolve();
    await arrived.promise;
  };
  await Promise.all(Array.from({ length: 4 }, async () => busy.transaction(findTogether)));
  await db.query(sql`alter table changing add column text text default 'new'`);
  const found = [{ id: 1, text: "new" }];
  assert.deepEqual(await busy.transaction(findAll), found);
  assert.deepEqual(await busy.transaction(findAll), found);
  await db.query(sql`alter table changing drop column text`);
  assert.deepEqual(await findAll(busy), [{ id: 1 }]);
});

test("a transaction that hides a failed statement is not reported as committed", async () => {
  const hiding = db.transaction(async (tx) => {
    await insert(tx, 1, "a");
    await insert(tx, 1, "again").catch(() => undefined);
    return "done";
  });
  await assert.rejects(hiding, /rolled back/);
  assert.deepEqual(await listNotes(), []);
});

test("a connection that dies inside a transaction fails that transaction alone", async () => {
  await using single = open(1);
  const dying = single.transaction(async (tx) => {
    await insert(tx, 1, "a");
    const [row] = await tx.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
    // No statement is under way when the connection breaks.
    await db.query(sql`select pg_terminate_backend(${row?.pid}, 5000)`);
    await insert(tx, 2, "b");
  });
  await assert.rejects(dying);
  assert.deepEqual(await listNotes(), []);
  await insert(single, 3, "c");
  assert.deepEqual(await listNotes(), [3]);
});

/** What a server says last when it was killed (PostgreSQL protocol, ErrorResponse). */
function lastWords(): Buffer {
  const fields = Buffer.from(
    "SFATAL\0C57P01\0Mterminating connection due to unexpected postmaster exit\0\0",
  );
  const head = Buffer.alloc(5);
  head.write("E");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

/** A proxy in front of the database, which passes answers on as `answer` changes them. */
async function openProxy(
  answer: (client: Socket, chunk: Buffer) => void,
): Promise<{ port: number } & AsyncDisposable> {
  const { host, port } = database.connection;
  const proxy = createServer((client) => {
    const server = connect(`${host}/.s.PGSQL.${port}`);
    server.on("data", (chunk: Buffer) => answer(client, chunk));
    client.on("data", (chunk) => server.write(chunk));
    for (const side of [client, server])
      side
        .on("error", () => undefined)
        .on("close", () => [client, server].map((each) => each.destroy()));
  });
  proxy.listen(0, "127.0.0.1");
  await once(proxy, "listening");
  const { port: own } = proxy.address() as AddressInfo;
  return { port: own, [Symbol.asyncDispose]: async () => void proxy.close() };
}

test("a connection that dies on its way from the pool fails the caller who gets it, and nobody else", async () => {
  // The database closes the connection right after it has answered "last".
  await using proxy = await openProxy((client, chunk) => {
    const isLast = chunk.includes("last");
    client.write(isLast ? Buffer.concat([chunk, lastWords()]) : chunk);
    if (isLast) client.end();
  });
  const { port } = proxy;
  await using single = openDb({ ...database.connection, host: "127.0.0.1", port, connections: 1 });
  const first = single.query(sql`select 'last' as text`);
  const second = single.transaction(async (tx) => tx.query(sql`select 1 as one`));
  second.catch(() => undefined);
  assert.deepEqual(await first, [{ text: "last" }]);
  await assert.rejects(second, isOutage);
  assert.deepEqual(await single.query(sql`select 2 as two`), [{ two: 2 }]);
});

test("a database that vanishes without a word fails who waits for it, in a transaction too, and nobody after", async () => {
  using bound = holdTimers(heldBoundMs);
  await using proxy = await openProxy((client, chunk) => {
    if (chunk.includes("vanished")) bound.pass();
    else client.write(chunk);
  });
  const there = { ...database.connection, host: "127.0.0.1", port: proxy.port };
  await using single = openDb({ ...there, connections: 1, query_timeout: heldBoundMs });
  await assert.rejects(single.query(sql`select 'vanished' as text`), isOutage);
  assert.deepEqual(await single.query(sql`select 1 as one`), [{ one: 1 }]);
  const work = single.transaction(async (tx) => tx.query(sql`select 'vanished' as text`));
  await assert.rejects(work, isOutage);
  assert.deepEqual(await single.query(sql`select 2 as two`), [{ two: 2 }]);
});

for (const [state, what] of [
  ["53100", "has no disk left"],
  ["53300", "has no connection left"],
  ["25006", "takes no writes"],
  ["40P01", "finds a deadlock at every try"],
] as const)
  test(`a database that ${what} is away for now`, async () => {
    const text = `do $$ begin raise exception using errcode = '${state}'; end $$`;
    await assert.rejects(db.query({ name: "", text, values: [] }), isOutage);
  });

for (const code of [
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "EMFILE",
  "ENETUNREACH",
  "ENETDOWN",
  "ENFILE",
])
  test(`a database is away for now where ${code} says that its host is`, () => {
    const fault = (what: string): Error => Object.assign(new Error(`${what} ${code} db`), { code });
    assert.ok(isOutage(fault("connect")));
    // A host with several addresses was tried at each of them.
    const both = Object.assign(new AggregateError([fault("::1"), fault("127.0.0.1")]), { code });
    assert.ok(isOutage(both));
  });

test("a database whose certificate is not trusted any more is away for now", () => {
  for (const code of ["CERT_HAS_EXPIRED", "DEPTH_ZERO_SELF_SIGNED_CERT", "EPROTO"])
    assert.ok(isOutage(Object.assign(new Error("of TLS"), { code })), code);
});

for (const [what, answer] of [
  ["has no TLS", "N"],
  ["speaks another protocol", "HTTP/1.1 400 Bad Request"],
] as const)
  test(`a database whose address leads to a server that ${what} is away for now`, async (t) => {
    const server = createServer((client) => void client.end(answer)).listen(0, "127.0.0.1");
    t.after(() => server.close());
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    const connectionString = `postgresql://svc@127.0.0.1:${port}/svc?sslmode=verify-full`;
    await using single = openDb({ connectionString, connections: 1 });
    await assert.rejects(single.query(sql`select 1 as one`), isOutage);
  });

test("a connection to a server that takes no writes is not used again", async () => {
  const name = `"${database.connection.database}"`;
  const alter = async (what: string): Promise<unknown> =>
    db.query({ name: "", text: `alter database ${name} ${what}`, values: [] });
  await alter("set default_transaction_read_only = on");
  await using single = open(1);
  const failing = single.transaction(async (tx) => insert(tx, 1, "a"));
  await assert.rejects(failing, isOutage);
  await alter("reset default_transaction_read_only");
  await single.transaction(async (tx) => insert(tx, 2, "b"));
  assert.deepEqual(await listNotes(), [2]);
});

test("an idle connection that dies is replaced", async () => {
  await using single = open(1);
  const [row] = await single.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  await db.query(sql`select pg_terminate_backend(${row?.pid}, 5000)`);
  const next = single.query(sql`select 1 as one`);
  assert.deepEqual(await next.catch(async () => single.query(sql`select 1 as one`)), [{ one: 1 }]);
});

test("calls are counted, the end of a transaction included", async () => {
  await using counted = open(1);
  await counted.query(sql`select 1`);
  assert.equal(counted.callsTotal, 1);
  await counted.transaction(async (tx) => insert(tx, 1, "a"));
  assert.equal(counted.callsTotal, 3);
  await assert.rejects(counted.transaction(async (tx) => insert(tx, 1, "a")));
  assert.equal(counted.callsTotal, 5);
});

test("a failed statement carries its SQLSTATE", async () => {
  await insert(db, 1, "a");
  const failed = await insert(db, 1, "b").catch((error: unknown) => error);
  assert.equal(sqlState(failed), "23505");
  assert.equal(sqlState(new Error("other")), null);
});

test("every statement ends after 30 s at the latest, of which it waits 5 s for a lock", async () => {
  const rows = await db.query(sql`
    select current_setting('statement_timeout') as all, current_setting('lock_timeout') as lock`);
  assert.deepEqual(rows, [{ all: "30s", lock: "5s" }]);
});

test("options in the address of the database stand beside those of a session", async () => {
  const url = `${database.url}${database.url.includes("?") ? "&" : "?"}options=-c%20search_path%3Dpg_temp`;
  await using own = openDb({ connectionString: url, connections: 1 });
  const rows = await own.query(sql`
    select current_setting('search_path') as path, current_setting('lock_timeout') as lock`);
  assert.deepEqual(rows, [{ path: "pg_temp", lock: "5s" }]);
});

const begun: [what: string, setting: string, value: string, kept: string][] = [
  [
    "a stricter isolation that the database begins with fails nothing here",
    "default_transaction_isolation",
    "serializable",
    "read committed",
  ],
  ["a database that compiles what is dear compiles nothing here", "jit", "on", "off"],
  ["a database that ends idle sessions ends none of these", "idle_session_timeout", "3s", "0"],
  ["a database that rounds fractions rounds none here", "extra_float_digits", "-15", "1"],
  [
    "a database that writes bytes as an escaped text is read as fast",
    "bytea_output",
    "escape",
    "hex",
  ],
  ["a database whose arrays hold no null holds them here", "array_nulls", "off", "on"],
  [
    "a database that finds what equals null finds nothing here",
    "transform_null_equals",
    "on",
    "off",
  ],
];
for (const [what, setting, value, kept] of begun)
  test(what, async () => {
    await using other = await openTestDatabase({ migrated: false });
    const { database: name = "" } = other.connection;
    await using before = openDb({ ...other.connection, connections: 1 });
    const text = `alter database ${name} set ${setting} = '${value}'`;
    await before.query({ name: "", text, values: [] });
    await using own = openDb({ ...other.connection, connections: 1 });
    const rows = await own.query(sql`select current_setting(${setting}) as value`);
    assert.deepEqual(rows, [{ value: kept }]);
  });

test("a database that is dropped, or takes no password of ours any more, is away", async () => {
  const other = await openTestDatabase({ migrated: false });
  await using own = openDb({ ...other.connection, connections: 1 });
  await own.query(sql`select`);
  await other[Symbol.asyncDispose]();
  const query = async (): Promise<unknown> => own.query(sql`select`);
  // The first one may only notice that its connection has ended.
  await query().catch(() => undefined);
  await assert.rejects(
    query,
    (error: NodeJS.ErrnoException) => error.code === "3D000" && isOutage(error),
  );
  await using refused = openDb({ ...other.connection, user: "nobody_here", connections: 1 });
  await assert.rejects(
    async () => refused.query(sql`select`),
    (error: NodeJS.ErrnoException) => error.code?.startsWith("28") === true && isOutage(error),
  );
});

test("a statement that took too long counts as an outage, and rolls back its transaction", async () => {
  await insert(db, 1, "a");
  const change = sql`update note set text = 'b' where id = 1`;
  await db.transaction(async (tx) => {
    await tx.query(change);
    await assert.rejects(
      db.transaction(async (other) => {
        await other.query(sql`set local lock_timeout = 1`);
        await other.query(change);
      }),
      isOutage,
    );
  });
  const slow = db.transaction(async (tx) => {
    await tx.query(sql`set local statement_timeout = 1`);
    await tx.query(sql`select pg_sleep(30)`);
  });
  await assert.rejects(slow, isOutage);
  assert.deepEqual(await listNotes(), [1]);
});

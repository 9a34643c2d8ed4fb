import assert from "node:assert/strict";
import { test } from "node:test";
import { Client } from "pg";
import { openDb, type Queryable, type Statement } from "./db.ts";
import { listPending, migrate } from "./migrate.ts";
import { openTestDatabase } from "./test-database.ts";
import { refuseShared, refuseUnfit } from "./requirements.ts";

const encodedAs = (encoding: string) => ({
  migrated: false,
  choices: `encoding ${encoding} locale_provider libc locale 'C'`,
});

const sessionOf = (client: Client): Queryable => ({
  query: async <Row extends object>({ text, values }: Statement) =>
    (await client.query<Row>(text, [...values])).rows,
});

test("a database that cannot store every text is refused", async () => {
  await using database = await openTestDatabase(encodedAs("LATIN1"));
  await using db = openDb({ ...database.connection, connections: 1 });
  const refusal = /^UnfitDatabase: .*DATABASE_URL.*encoding LATIN1: .*UTF8/;
  await assert.rejects(migrate(db), refusal);
  await assert.rejects(listPending(db), refusal);
});

test("a PostgreSQL that is too old is refused, and the oldest that will do is taken", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using db = openDb({ ...database.connection, connections: 1 });
  const as = (version: number): Queryable => ({
    query: async <Row extends object>(statement: Statement) =>
      (await db.query<Row>(statement)).map((row) => Object.assign(row, { version })),
  });
  await assert.rejects(
    refuseUnfit(as(149_999)),
    /^UnfitDatabase: .*PostgreSQL 14: version 15 or newer/,
  );
  await refuseUnfit(as(150_000));
});

test("a database without an encoding, as initdb makes it where no locale is set, is taken", async () => {
  await using database = await openTestDatabase(encodedAs("SQL_ASCII"));
  await using db = openDb({ ...database.connection, connections: 1 });
  await refuseUnfit(db);
});

test("a database whose sessions begin without the settings they are opened with is refused", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using db = openDb({ ...database.connection, connections: 1 });
  await refuseUnfit(db);
  // As through a pooler that ignores what a session asks for.
  const client = new Client(database.connection);
  await client.connect();
  const pooled = sessionOf(client);
  try {
    await assert.rejects(
      refuseUnfit(pooled),
      /^UnfitDatabase: .*DATABASE_URL.* begin without .*plan_cache_mode=force_generic_plan.*lock_timeout=5s.*statement_timeout=30s.*alter role.*reconnect/,
    );
  } finally {
    await client.end();
  }
});

test("an address that sets what sessions need otherwise is named as a reason", async () => {
  await using database = await openTestDatabase({ migrated: false });
  const connectionString = `${database.url}&statement_timeout=60000`;
  await using db = openDb({ connectionString, connections: 1 });
  await assert.rejects(
    refuseUnfit(db),
    /^UnfitDatabase: .*without statement_timeout=30s: either the address sets other values, or a pooler/,
  );
});

test("a pooler in transaction mode is refused even if it knows prepared statements", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using db = openDb({ ...database.connection, connections: 1 });
  const client = new Client(database.connection);
  await client.connect();
  try {
    await refuseShared(db, sessionOf(client));
    // Between transactions such a pooler leads any connection to any session.
    const [one, other] = [sessionOf(client), sessionOf(client)];
    await assert.rejects(
      refuseShared(one, other),
      /^UnfitDatabase: a pooler in transaction mode .*DATABASE_URL/,
    );
  } finally {
    await client.end();
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { openOwnPostgres } from "../../../../test/own-postgres.ts";
import { openDb, type Queryable } from "./db.ts";
import { watchServer } from "./same-server.ts";
import { openTestDatabase } from "./test-database.ts";

test("sessions of different time zones lead to one server", async () => {
  await using database = await openTestDatabase({ migrated: false });
  const sessionIn = (zone: string) =>
    openDb({ connectionString: `${database.url}&options=-c%20timezone%3D${zone}`, connections: 1 });
  await using one = sessionIn("UTC");
  await using two = sessionIn("Asia/Tokyo");
  let led: Queryable = one;
  let told = 0;
  const look = watchServer({ query: async (statement) => led.query(statement) }, () => {
    told += 1;
  });
  for (led of [one, two, one]) await look();
  assert.equal(told, 0);
});

test("a server that takes over is not reported, but a former one that answers beside it is, once a minute", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using other = await openOwnPostgres();
  await using one = openDb({ ...database.connection, connections: 1 });
  await using two = openDb({ connectionString: other.url, connections: 1 });
  let led: Queryable = one;
  let told = 0;
  let elapsedMs = 0;
  const look = watchServer(
    { query: async (statement) => led.query(statement) },
    () => {
      told += 1;
    },
    () => elapsedMs,
  );
  const lookAt = async (db: Queryable): Promise<number> => {
    led = db;
    await look();
    return told;
  };
  assert.equal(await lookAt(one), 0);
  assert.equal(await lookAt(one), 0);
  assert.equal(await lookAt(two), 0);
  assert.equal(await lookAt(two), 0);
  assert.equal(await lookAt(one), 1);
  elapsedMs += 59_000;
  assert.equal(await lookAt(two), 1);
  elapsedMs += 1000;
  assert.equal(await lookAt(one), 2);
});

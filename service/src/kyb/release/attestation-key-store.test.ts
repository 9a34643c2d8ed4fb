// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDb } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import * as store from "./attestation-key-store.ts";

await using database = await openTestDatabase();
await using db = openDb({ ...database.connection, connections: 1 });

async function addKeys(keys: Readonly<Record<string, number>>): Promise<void> {
  for (const [kid, startsAt] of Object.entries(keys)) {
    const privateSealed = Buffer.alloc(1);
    await store.insertKey(db, { kid, publicJwk: {}, privateSealed, createdAt: 0, startsAt });
  }
}

const keysNow = async (): Promise<string[]> =>
  (await store.listKeys(db)).map(({ kid, startsAt }) => `${kid} ${startsAt}`);

await test("a successor that was revoked before its start never signs, and its slot is free", async () => {
  await addKeys({ one: 100, two: 200 });
  await store.revokeKey(db, "two", 150);
  assert.equal(await store.startKey(db, "two", 150), false);
  assert.equal(await store.holdKey(db, "two"), false);
  await addKeys({ three: 200, late: 200 });
  assert.deepEqual(await keysNow(), ["one 100", "three 200"]);
});

await test("a key that signs already does not start again, and no other starts with one", async () => {
  await addKeys({ four: 300 });
  assert.equal(await store.startKey(db, "one", 150), false);
  assert.equal(await store.startKey(db, "four", 250), true);
  assert.equal(await store.startKey(db, "four", 250), false);
  assert.deepEqual(await keysNow(), ["one 100", "three 200", "four 250"]);
});

await test("a key goes once its successor has signed for longer than anything that it signed is valid", async () => {
  await store.purgeKeys(db, 200);
  assert.deepEqual(await keysNow(), ["one 100", "three 200", "four 250"]);
  await store.purgeKeys(db, 201);
  assert.deepEqual(await keysNow(), ["three 200", "four 250"]);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { WalletRefusal, addBroker, listBrokers, memoryStorage, removeBroker } from "./index.ts";

void test("brokers are added and removed by their origins; those the wallet came with stay", async () => {
  const storage = memoryStorage();
  assert.equal(await addBroker(storage, "https://login.example"), "https://login.example");
  await addBroker(storage, "https://login.example/");
  await addBroker(storage, "http://localhost:4000");
  const seeded = ["https://seed.example"];
  assert.deepEqual(await listBrokers(storage, seeded), [
    "https://seed.example",
    "https://login.example",
    "http://localhost:4000",
  ]);
  await removeBroker(storage, "https://login.example");
  await removeBroker(storage, "https://seed.example");
  assert.deepEqual(await listBrokers(storage, seeded), [
    "https://seed.example",
    "http://localhost:4000",
  ]);
});

void test("brokers keep the order in which they were added, whatever the storage lists first", async () => {
  const names = ["c", "a", "d", "b"].map((name) => `https://${name}.example`);
  for (const turned of [false, true]) {
    const plain = memoryStorage();
    const storage: typeof plain = {
      ...plain,
      list: async (folder) => {
        const keys = [...(await plain.list(folder))].toSorted();
        return turned ? keys.toReversed() : keys;
      },
    };
    for (const url of [...names, names[0] ?? ""]) await addBroker(storage, url);
    assert.deepEqual(await listBrokers(storage, []), names);
  }
});

void test("a broker that cannot be read is left out and told of, and comes back when it is added", async () => {
  const damaged: string[] = [];
  const storage = { ...memoryStorage(), tellDamaged: (key: string) => void damaged.push(key) };
  await addBroker(storage, "https://login.example");
  const [key] = await storage.list("broker");
  assert.ok(key);
  await storage.put(key, "");
  assert.deepEqual([await listBrokers(storage, []), damaged], [[], [key]]);
  await addBroker(storage, "https://login.example");
  assert.deepEqual(await listBrokers(storage, []), ["https://login.example"]);
});

void test("what is no origin, or not safe to ask, is no broker", async () => {
  for (const url of [
    "login.example",
    "http://login.example",
    "https://login.example/path",
    "https://login.example?x",
    "https://user@login.example",
    "https://LOGIN.example",
    "ftp://login.example",
    "javascript:0",
  ])
    await assert.rejects(addBroker(memoryStorage(), url), WalletRefusal, url);
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { dataRequestItem, serveBusiness } from "../test/fake-business.ts";
import { openFakeBroker, privateKeys } from "../test/fake-broker.ts";
import { refuses, walletOf } from "../test/test-wallet.ts";
import { memoryStorage, openIdentity } from "./index.ts";
import { putRecord, readRecords } from "./records.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);

await test("what an earlier version showed is approved after an upgrade, where no optional field goes", async () => {
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  fake.items.push({ ...dataRequestItem, optional: ["BUSINESS_LEI"] });
  await wallet.inbox();
  const secret = { kind: "private-key", privateKey: privateKeys.alice } as const;
  const records = { identity: await openIdentity(secret), storage, random: randomBytes };
  const [{ key, value } = assert.fail()] = await readRecords(records, "shown");
  const fingerprints = Object.entries(value as Record<string, { fingerprint: string }>).map(
    ([name, { fingerprint }]) => [name, fingerprint],
  );
  await putRecord(records, key, Object.fromEntries(fingerprints) as object);

  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  await wallet.vote("01J", { vote: "approve", without: ["BUSINESS_LEI"] });
  assert.deepEqual(fake.votes[0]?.body["optional"], []);
});

await test("what was shown is what is approved, also after a list that did not have it", async () => {
  fake.reset();
  const wallet = await walletOf("alice", [broker.url]);
  fake.items = [dataRequestItem];
  await wallet.inbox();
  fake.items = [];
  await wallet.inbox();
  await wallet.inbox();
  fake.items = [{ ...dataRequestItem, purpose: "To do something else." }];
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  assert.deepEqual(fake.votes, []);
  fake.items = [{ ...dataRequestItem, validUntil: dataRequestItem.validUntil - 1 }];
  assert.equal((await wallet.vote("01J", { vote: "approve" })).status, "open");
});

const itemsOf = (round: number): Record<string, unknown>[] =>
  Array.from({ length: 100 }, (_, at) => ({ id: `q-${round}-${at}`, kind: "something_new" }));

await test("of what is on no list any more the latest thousand is remembered", async () => {
  fake.reset();
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  for (let round = 0; round < 13; round += 1) {
    fake.items = itemsOf(round);
    await wallet.inbox();
  }
  const secret = { kind: "private-key", privateKey: privateKeys.alice } as const;
  const records = { identity: await openIdentity(secret), storage, random: randomBytes };
  const [{ value } = assert.fail()] = await readRecords(records, "shown");
  const ids = Object.keys(value as object).map((name) => name.split(" ")[1] ?? "");
  assert.equal(ids.length, 1100);
  assert.deepEqual(
    [...new Set(ids.map((id) => id.split("-")[1]))],
    ["12", "11", "10", "9", "8", "7", "6", "5", "4", "3", "2"],
  );
});

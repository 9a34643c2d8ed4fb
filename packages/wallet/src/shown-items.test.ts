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

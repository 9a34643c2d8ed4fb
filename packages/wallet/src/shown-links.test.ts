import assert from "node:assert/strict";
import { test } from "node:test";
import { openFakeBroker } from "../test/fake-broker.ts";
import { deadline, from, issue, serveFields } from "../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { memoryStorage } from "./index.ts";

await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");

function fresh(): void {
  broker.reset();
  fields.reset();
  fields.issued = [
    issue(alice, { IDCARD_DOB: "1990-02-03" }),
    issue(alice, { EMAIL: "alice@example.com" }, { document: "email" }),
    issue(alice, { ADDRESS_CITY: "Bern" }, { document: "address" }),
  ];
}

const aliceWallet = async (changed = {}) => walletOf("alice", [broker.url], changed);
const foreign = `svc:request?conn=https%3A%2F%2Fbank.example%2Fx&from=${from}&dl=${deadline + 60}&attr=email`;

await test("an approval is of what was shown, and not of what came in its place", async () => {
  fresh();
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  await wallet.describe(fields.link());
  for (const changed of [
    { purpose: "To sell it." },
    { callback_host: "evil.example" },
    { client_name: "Another" },
    { optional: ["EMAIL"], required: ["IDCARD_DOB", "ADDRESS_CITY"] },
  ]) {
    fields.object = changed;
    const another = await aliceWallet({ storage });
    await refuses(another.approve(fields.link()), "invalid_request", /not what was shown/);
  }
  assert.equal(fields.status, "PENDING");
  fields.object = { purpose: "To sell it." };
  await wallet.describe(fields.link());
  await wallet.approve(fields.link());
  assert.equal(fields.status, "INITIATING");
  // A link that was fully answered may be asked anew.
  fields.object = {};
  assert.equal((await wallet.approve(fields.link())).kind, "delivered");
});

await test("an approval gives no field and no value that was not shown", async () => {
  const asked = "svc:?attr=email,address-city&type=text";
  for (const link of [() => fields.link(), () => asked])
    for (const received of [
      { ADDRESS_CITY: "Bern" },
      { IDCARD_DOB: "1991-01-01", EMAIL: "other@example.com" },
    ]) {
      fresh();
      fields.issued.length = 2;
      const storage = memoryStorage();
      const wallet = await aliceWallet({ storage });
      await wallet.describe(link());
      fields.issued.push(issue(alice, received, { issuedAt: 999_999 }));
      await wallet.receive();
      await refuses(wallet.approve(link()), "invalid_request", /not what was shown/);
      assert.equal(fields.status, "PENDING");
      await wallet.describe(link());
      assert.notEqual((await wallet.approve(link())).kind, "code-required");
    }
});

await test("the same values out of another credential are what was shown", async () => {
  fresh();
  const wallet = await aliceWallet();
  await wallet.describe(fields.link());
  fields.issued.push(issue(alice, { EMAIL: "alice@example.com" }, { issuedAt: 999_999 }));
  await wallet.approve(fields.link());
  assert.equal(fields.status, "INITIATING");
});

await test("what was shown is forgotten once it has ended", async () => {
  fresh();
  const storage = memoryStorage();
  await (await aliceWallet({ storage })).describe(fields.link());
  assert.equal((await storage.list("shown")).length, 1);
  const later = await aliceWallet({ storage, now: async () => deadline + 1 });
  await later.describe(foreign);
  assert.equal((await storage.list("shown")).length, 1);
});

await test("where what was shown cannot be read, the link is to be looked at again, whatever else is shown", async () => {
  fresh();
  const told: string[] = [];
  const storage = { ...memoryStorage(), tellDamaged: (key: string) => void told.push(key) };
  const wallet = await aliceWallet({ storage });
  await wallet.describe(fields.link());
  const [key] = await storage.list("shown");
  assert.ok(key !== undefined);
  await storage.put(key, "");
  await wallet.describe(foreign);
  assert.deepEqual(told, []);
  await refuses(wallet.approve(fields.link()), "invalid_request", /look at the link again/);
  await wallet.describe(fields.link());
  await wallet.approve(fields.link());
  assert.equal(fields.status, "INITIATING");
});

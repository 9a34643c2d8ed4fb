import assert from "node:assert/strict";
import { test } from "node:test";
import { openFakeBroker } from "../test/fake-broker.ts";
import { issue, serveFields } from "../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";

await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");

async function walletWith(environment: "live" | "sandbox") {
  broker.reset();
  fields.reset();
  const values = { EMAIL: "alice@example.com", IDCARD_DOB: "1990-02-03", ADDRESS_CITY: "Bern" };
  fields.issued = [issue(alice, values, { environment })];
  return walletOf("alice", [broker.url]);
}

await test("a request of one side is answered with fields of that side alone", async () => {
  const names = ["IDCARD_DOB", "EMAIL", "ADDRESS_CITY"];
  for (const [environment, livemode, missing] of [
    ["sandbox", true, names],
    ["live", false, names],
    ["sandbox", false, []],
    ["live", true, []],
  ] as const) {
    const wallet = await walletWith(environment);
    fields.object = { livemode };
    const { data } = await wallet.describe(fields.link());
    assert.deepEqual(data["missing"], missing, `${environment} ${livemode}`);
  }
});

await test("who withholds all that is asked for gives nothing, and signs nothing", async () => {
  const wallet = await walletWith("live");
  fields.required = [];
  const answer = wallet.approve(fields.link(), { without: ["ADDRESS_CITY"] });
  await refuses(answer, "no_matching_data");
  assert.deepEqual([fields.status, fields.shared], ["PENDING", []]);
});

await test("where the broker's list does not come, the refusal says that and not that nothing fits", async () => {
  const wallet = await walletWith("live");
  broker.answers.set("/w/credentials?limit=100", { status: 429, body: "" });
  const { words } = await wallet.describe(fields.link());
  assert.match(
    words.join("\n"),
    /IDCARD_DOB: nothing verified that you hold fits, and .+: status 429\./,
  );
  const why = /status 429, and nothing .+ fits IDCARD_DOB/;
  await refuses(wallet.approve(fields.link()), "broker_refused", why);
  await wallet.decline(fields.link());
  assert.deepEqual([fields.status, fields.error], ["FAILED", "access_denied"]);
});

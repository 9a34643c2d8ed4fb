import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { digits, loginId, openFakeBroker } from "../test/fake-broker.ts";
import { deadline, from, issue, now, serveFields } from "../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { type HistoryEntry, memoryStorage } from "./index.ts";

await using broker = await openFakeBroker();
const fields = serveFields(broker);
const alice = addressOf("alice");
await using taker = await openTaker();

/** A merchant that takes the data, and answers as a test says. */
async function openTaker() {
  const fake = { url: "", taken: 0, answer: (response: ServerResponse) => void response.end() };
  const server = createServer((request, response) => {
    request.resume().on("end", () => {
      fake.taken += 1;
      fake.answer(response);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  fake.url = `http://localhost:${(server.address() as AddressInfo).port}`;
  return Object.assign(fake, {
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
}

const link = `svc:request?conn=${encodeURIComponent(`${taker.url}/share`)}&from=${from}&dl=${deadline}&attr=email`;

/** The history after an approval that got this answer; the approval may be refused. */
async function approveAnd(answer: (response: ServerResponse) => void) {
  fields.issued = [issue(alice, { EMAIL: "alice@example.com" })];
  Object.assign(taker, { taken: 0, answer });
  const wallet = await walletOf("alice", [broker.url]);
  const approving = wallet.approve(link, accepting("unknown-requester"));
  return { approving, history: async (): Promise<readonly HistoryEntry[]> => wallet.history() };
}

await test("an answer that was taken is in the history once, as approved", async () => {
  const { approving, history } = await approveAnd((response) => response.end("{}"));
  await approving;
  const entries = (await history()).map(({ outcome, fields: given }) => [outcome, given]);
  assert.deepEqual(entries, [["approved", ["EMAIL"]]]);
});

await test("whoever takes the data cannot keep that out of the history", async () => {
  const answers: [string, (response: ServerResponse) => void, RegExp][] = [
    [
      "a redirect",
      (response) => response.writeHead(302, { location: "/x" }).end(),
      /was told, and/,
    ],
    ["no text", (response) => response.end(Buffer.from([0xff, 0xfe])), /was told, and gives no/],
    [
      "half of one",
      (response) => {
        response.writeHead(200, { "content-length": "100" });
        response.write("{", () => response.destroy());
      },
      /was told, and gives no/,
    ],
    ["nothing", (response) => response.destroy(), /cannot be reached/],
  ];
  for (const [what, answer, message] of answers) {
    const { approving, history } = await approveAnd(answer);
    await refuses(approving, "unreachable", message);
    assert.equal(taker.taken, 1, what);
    const [entry, ...more] = await history();
    assert.deepEqual([entry?.outcome, entry?.fields, more], ["sent", ["EMAIL"], []], what);
  }
  const { approving, history } = await approveAnd((response) => response.writeHead(500).end());
  const outcome = await approving;
  assert.ok(outcome.kind === "delivered" && outcome.refusal !== undefined);
  assert.deepEqual(
    (await history()).map((entry) => entry.outcome),
    ["sent"],
  );
});

await test("a refusal whose answer is lost is in the history all the same", async () => {
  Object.assign(taker, { answer: (response: ServerResponse) => response.destroy() });
  const wallet = await walletOf("alice", [broker.url]);
  await refuses(wallet.decline(link, accepting("unknown-requester")), "unreachable");
  assert.deepEqual(
    (await wallet.history()).map(({ action, outcome }) => [action, outcome]),
    [["request", "declined"]],
  );
});

await test("what a broker asks has one entry for the same answer, however often a person gives it", async () => {
  broker.reset();
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage, now: async () => now });
  const path = `/w/l/${loginId}`;
  broker.answers.set(path, { status: 500, body: {} });
  const approving = { code: digits };
  await wallet.approve(broker.qrLink(), approving);
  const [sent, ...more] = await wallet.history();
  assert.deepEqual([sent?.outcome, more], ["sent", []]);
  const later = await walletOf("alice", [broker.url], { storage, now: async () => now + 5 });
  await later.approve(broker.qrLink(), approving);
  broker.answers.delete(path);
  for (let times = 0; times < 2; times += 1) {
    await later.approve(broker.qrLink(), approving);
    assert.deepEqual(await later.history(), [{ ...sent, outcome: "approved" }]);
  }
  // A refusal is another answer, and links of others than brokers may be answered any number of times.
  broker.answers.set(path, { status: 500, body: {} });
  for (let times = 0; times < 2; times += 1) await later.decline(broker.qrLink());
  for (let times = 0; times < 2; times += 1) await later.approve("svc:sign?data=0x6869&type=qr");
  const outcomes = (await later.history()).map(({ action, outcome }) => `${action} ${outcome}`);
  assert.deepEqual(outcomes.toSorted(), [
    "login approved",
    "login declined",
    "sign approved",
    "sign approved",
  ]);
});

await test("an app that asks is named by its scheme, and is no host", async () => {
  const wallet = await walletOf("alice", [broker.url]);
  const conn = "evilapp%3A%2F%2Fbank.example%2Fcb";
  const toApp = `svc:sign?data=0x6869&conn=${conn}&type=app-link`;
  assert.deepEqual((await wallet.describe(toApp)).requester, { known: false, scheme: "evilapp:" });
  await wallet.approve(toApp, accepting("unknown-requester"));
  assert.equal((await wallet.history())[0]?.requester, undefined);
});

await test("the history is told newest first, whatever the storage lists first", async () => {
  const plain = memoryStorage();
  const list: typeof plain.list = async (folder) => (await plain.list(folder)).toReversed();
  for (const second of [1, 3, 2]) {
    const clock = async (): Promise<number> => now + second;
    const wallet = await walletOf("alice", [broker.url], { storage: plain, now: clock });
    await wallet.approve("svc:sign?data=0x6869&type=qr");
  }
  for (const storage of [plain, { ...plain, list }]) {
    const wallet = await walletOf("alice", [broker.url], { storage });
    const seconds = (await wallet.history()).map(({ at }) => at - now);
    assert.deepEqual(seconds, [3, 2, 1]);
  }
});

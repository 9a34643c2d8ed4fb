import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";
import { businessCategory } from "@svc/protocol";
import { business, chainId, serveBusiness } from "../test/fake-business.ts";
import { openFakeBroker, problem } from "../test/fake-broker.ts";
import { now } from "../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { addBroker, removeBroker } from "./brokers.ts";
import { memoryStorage, type WalletParts } from "./index.ts";
import { hashedKey } from "./storage.ts";

await using broker = await openFakeBroker();
await using other = await openFakeBroker();
const [fake, otherFake] = [serveBusiness(broker), serveBusiness(other)];

/** The first broker on the list opens no session. */
function goAway(): void {
  other.token = "";
  other.answers.set("/w/session/challenge", problem(503, "starting"));
}

const item = {
  id: "01J",
  kind: "signature_request",
  category: businessCategory.signature,
  messageKind: "TEXT",
  business: { address: business, name: "Alpine AG" },
  requester: { name: "Demo Bank", domain: "bank.example" },
  chainId,
  epoch: fake.epoch,
  validUntil: now + 4200,
  expiresAt: now + 600,
  message: "We agree.",
  digest: "0x6db6fbd9b7bd85e1b6a7ab3a05e2a5ab1d3fd6cd3dba3ac4ff5c1d5d1bbf1eb3",
  purpose: "To sign a contract.",
};

async function open(changed: Partial<WalletParts> = {}) {
  const told: string[] = [];
  const brokers = [other.url, broker.url];
  const tell = (line: string): void => void told.push(line);
  const wallet = await walletOf("alice", brokers, { tell, ...changed });
  return { wallet, told };
}

beforeEach(() => {
  for (const each of [broker, other]) each.reset();
  for (const each of [fake, otherFake]) each.reset();
});

await test("a broker that is away holds nothing back that others keep, and the person is told", async () => {
  goAway();
  const { wallet, told } = await open();
  fake.items = [item];
  assert.deepEqual(
    (await wallet.inbox()).map(({ id }) => id),
    ["01J"],
  );
  assert.equal((await wallet.businesses()).length, 1);
  assert.equal((await wallet.logins()).length, 1);
  assert.equal(told.length, 3);
  assert.match(told[0] ?? "", /refuses: .*\(starting\); what it keeps is not shown here$/);
  await wallet.vote("01J", { vote: "reject" });
  assert.equal(fake.votes.length, 1);
  await wallet.vote("01J", { vote: "reject" });
  assert.equal(fake.votes.length, 2, "sent again");
  await wallet.endLogin("one");
  assert.match(told[3] ?? "", /\(starting\); if that broker has the login one, it goes on$/);
});

await test("what nobody else has is not said to be nowhere while a broker is away", async () => {
  goAway();
  const { wallet } = await open();
  for (const work of [
    async () => wallet.vote("02J", { vote: "approve" }),
    async () => wallet.endLogin("two"),
    async () => wallet.receipt("0190c0de-0000-7000-8000-000000000001"),
    async () => wallet.chooseBusiness(`0x${"99".repeat(20)}`),
    // The identity might have another business at the broker that is away.
    async () => wallet.chooseBusiness(undefined),
  ])
    await refuses(work(), "broker_refused", /\(starting\)/);
});

await test("while all are away nothing passes for empty", async () => {
  goAway();
  broker.answers.set("/w/session/challenge", problem(503, "starting"));
  broker.token = "";
  const { wallet, told } = await open();
  for (const work of [
    async () => wallet.inbox(),
    async () => wallet.businesses(),
    async () => wallet.logins(),
    async () => wallet.receive(),
  ])
    await refuses(work(), "broker_refused", /\(starting\)/);
  assert.deepEqual(told, []);
});

await test("what a broker showed counts while it is away, and no other puts its own under that id", async () => {
  const { wallet } = await open();
  const shown = { ...item, message: "Another." };
  otherFake.items = [shown];
  await wallet.inbox();
  goAway();
  other.answers.set("/w/inbox?limit=100", problem(503, "starting"));
  await wallet.inbox();
  fake.items = [item];
  for (const vote of ["approve", "reject"] as const)
    await refuses(wallet.vote("01J", { vote }), "broker_refused", /\(starting\)/);
  other.answers.clear();
  otherFake.items = [{ ...shown, purpose: "Something else." }];
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  await wallet.vote("01J", { vote: "reject" });
  assert.deepEqual([otherFake.votes.length, fake.votes.length], [1, 0]);
});

await test("what two brokers show under one id is voted on at neither", async () => {
  const { wallet } = await open();
  for (const each of [fake, otherFake]) each.items = [item];
  await wallet.inbox();
  for (const vote of ["approve", "reject"] as const)
    await refuses(wallet.vote("01J", { vote }), "invalid_request", /both show something as 01J/);
});

await test("what a broker showed that was taken off the list is in nobody's way", async () => {
  const storage = memoryStorage();
  await addBroker(storage, other.url);
  const wallet = await walletOf("alice", [broker.url], { storage });
  for (const items of [[item], []]) {
    otherFake.items = [item];
    fake.items = items;
    await wallet.inbox();
    await removeBroker(storage, other.url);
    const isSeen = items.length > 0;
    fake.items = [item];
    // The removed broker may have shown something else under this id.
    const approving = wallet.vote("01J", { vote: "approve" });
    await refuses(approving, "invalid_request", isSeen ? /digest/ : /look at the inbox again/);
    await wallet.vote("01J", { vote: "reject" });
    await addBroker(storage, other.url);
  }
  assert.deepEqual([otherFake.votes.length, fake.votes.length], [0, 2]);
});

const vouchedBy = (url: string): string =>
  `"Demo Bank" (bank.example, verified by ${new URL(url).host})`;

await test("who asks a business is said with the broker that vouches for it", async () => {
  const { wallet } = await open();
  const login = { session: "02J", issuer: other.url, clientId: "c", clientName: "Demo Bank" };
  const vote = { id: "02J", kind: "business_login", category: businessCategory.login };
  fake.items = [item];
  otherFake.items = [{ ...item, ...login, ...vote, scope: "openid", actingMember: business }];
  const said = new Map((await wallet.inbox()).map(({ id, words }) => [id, words[0] ?? ""]));
  const [asker, at] = [broker, other].map(({ url }) => vouchedBy(url));
  assert.ok(said.get("01J")?.startsWith(`${asker} asks`), said.get("01J"));
  assert.ok(said.get("02J")?.endsWith(`at ${at}.`), said.get("02J"));
});

await test("what one broker sends, however odd, hides nothing of the others", async () => {
  const { wallet } = await open();
  fake.items = [item];
  const oddId = "02J";
  const voted = { ...item, id: oddId };
  const release = { kind: "data_request", category: businessCategory.data, requestId: oddId };
  const login = { kind: "business_login", category: businessCategory.login, session: oddId };
  const named = { issuer: other.url, clientName: "Shop", scope: "openid", actingMember: business };
  for (const odd of [
    { ...voted, expiresAt: Number.MAX_SAFE_INTEGER },
    { ...voted, ...release, audience: "\ud800", required: [], optional: [], deadline: now },
    { ...voted, ...login, ...named, clientId: "\ud800" },
    { ...voted, ...login, ...named, clientId: "c", requester: { name: "Shop", domain: "\ud800" } },
  ]) {
    otherFake.items = [odd];
    const ids = (await wallet.inbox()).map(({ id }) => id);
    assert.deepEqual(ids, [oddId, "01J"], JSON.stringify(odd));
    await wallet.vote(oddId, { vote: "reject" });
  }
});

await test("a broker that takes its time for every page of a list holds the others up for a minute", async () => {
  let at = now;
  const slow: typeof fetch = async (url, init) => {
    if (typeof url === "string" && url.startsWith(other.url)) at += 14;
    return fetch(url, init);
  };
  const { wallet, told } = await open({ fetch: slow, now: async () => at });
  fake.items = [item];
  for (const path of ["/w/inbox?limit=100", "/w/businesses", "/w/logins?limit=100"]) {
    const endless = { status: 200, body: { items: [], nextCursor: "c" } };
    const next = `${path}${path.includes("?") ? "&" : "?"}cursor=c`;
    for (const each of [path, next]) other.answers.set(each, endless);
  }
  for (const list of [
    async () => wallet.inbox(),
    async () => wallet.businesses(),
    async () => wallet.logins(),
  ]) {
    const before = at;
    assert.equal((await list()).length, 1);
    assert.ok(at - before < 120, `${at - before} s`);
    assert.match(
      told.at(-1) ?? "",
      /takes too long to send a list; what it keeps is not shown here/,
    );
    await wallet.close();
  }
});

await test("a broker whose chain is away, is another than before, or was forgotten badly holds nobody else up", async () => {
  const storage = memoryStorage();
  const { wallet, told } = await open({ storage });
  for (const each of [fake, otherFake]) each.items = [item];
  assert.equal((await wallet.inbox()).length, 2);
  const idsOf = async () => (await wallet.inbox()).map((entry) => entry.broker);
  other.answers.set("/w/chain", {
    status: 200,
    body: { error: { code: -32_000, message: "busy" } },
  });
  assert.deepEqual(await idsOf(), [broker.url]);
  other.answers.clear();
  otherFake.chainId = 5;
  assert.deepEqual(await idsOf(), [broker.url]);
  otherFake.chainId = chainId;
  await storage.put(hashedKey("chain", other.url), "");
  assert.deepEqual(await idsOf(), [broker.url]);
  assert.deepEqual(
    told.map((line) => /busy|different chain|cannot read/.exec(line)?.[0]),
    ["busy", "different chain", "cannot read"],
  );
});

await test("what was shown and cannot be read is shown again, also while a broker is away", async () => {
  const storage = memoryStorage();
  const { wallet } = await open({ storage });
  fake.items = [item];
  await wallet.inbox();
  goAway();
  const [key] = await storage.list("shown");
  assert.ok(key !== undefined);
  await storage.put(key, "damaged");
  const again = /cannot be read: look at the inbox again/;
  await wallet.describe("svc:?attr=email&type=text");
  for (const _ of [1, 2])
    await refuses(wallet.vote("01J", { vote: "reject" }), "invalid_request", again);
  await wallet.inbox();
  await wallet.vote("01J", { vote: "reject" });
  assert.equal(fake.votes.length, 1);
});

await test("a business that two brokers call theirs is neither's, and one that is away may call it that", async () => {
  const { wallet } = await open();
  await refuses(wallet.chooseBusiness(business), "invalid_input", /both say that 0x.* is theirs/);
  goAway();
  await refuses(wallet.chooseBusiness(business), "broker_refused", /\(starting\)/);
});

/** A receipt of the right form; its parts do not belong together. */
function receiptOf(referenceKey: string, user = addressOf("alice")) {
  const word = `0x${"11".repeat(32)}`;
  const share = { request: referenceKey, connection: "https://login.example/w/o/t", requester: "" };
  const hashes = { object: word, fields: word, data: word, deadline: now };
  const place = { operator: business, transactionHash: word, blockNumber: 1, blockTime: now };
  return {
    referenceKey,
    attempt: 1,
    salt: word,
    user,
    livemode: true,
    requestObject: "a.b.c",
    share: { ...share, ...hashes },
    signature: "0x11",
    fields: [],
    chainId,
    registry: business,
    settlement: business,
    initiate: { ...place, root: word, proof: [] },
  };
}

await test("a receipt is of the order that was asked for and of this identity, whichever broker answers first", async () => {
  const { wallet } = await open();
  const [asked, another] = ["ab".repeat(32), "cd".repeat(32)];
  const path = `/w/orders/${asked}/receipt`;
  broker.answers.set(path, { status: 200, body: receiptOf(asked) });
  for (const told of [receiptOf(another), receiptOf(asked, addressOf("bob"))]) {
    other.answers.set(path, { status: 200, body: told });
    const { referenceKey, user } = await wallet.receipt(asked);
    assert.deepEqual([referenceKey, user], [asked, wallet.address]);
  }
  broker.answers.delete(path);
  await refuses(wallet.receipt(asked), "broker_refused", /a receipt other than the one asked for/);
});

await test("a login is ended at every broker that has it", async () => {
  const { wallet, told } = await open();
  await wallet.endLogin("one");
  for (const each of [broker, other]) assert.ok(each.paths().includes("POST /w/logins/one/end"));
  assert.deepEqual(told, []);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { encodeCharter, governanceActs, type Charter, type Hex32 } from "@svc/protocol";
import { factory, serveBusiness } from "../test/fake-business.ts";
import { openFakeBroker } from "../test/fake-broker.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { addressOfBusiness } from "./business-wallet.ts";
import { memoryStorage, type WalletStorage } from "./index.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);

const path = "/w/businesses";
const itemOf = (digits: string): object => ({
  address: `0x${digits.repeat(20)}`,
  name: `Alpine ${digits}`,
  status: "active",
  rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance: "MAJORITY" },
  members: [{ address: addressOf("alice"), name: "", votingRights: true }],
});

await test("all businesses of an identity are listed, however many pages they fill", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  broker.answers.set(path, { status: 200, body: { items: [itemOf("a1")], nextCursor: "0.1.0x" } });
  broker.answers.set(`${path}?cursor=0.1.0x`, { status: 200, body: { items: [itemOf("a2")] } });
  const listed = await wallet.businesses();
  assert.deepEqual(
    listed.map(({ name }) => name),
    ["Alpine a1", "Alpine a2"],
  );
});

await test("a business says what became of what its members were asked", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const proposal = { id: "02J", operation: "moveTo(address)", status: "failed", arguments: "0x" };
  const proposals = [proposal, { id: 1, operation: "withdraw(bytes32)", status: "open" }, null];
  const items = [{ ...itemOf("a1"), proposals }, itemOf("a2")];
  broker.answers.set(path, { status: 200, body: { items } });
  assert.deepEqual(
    (await wallet.businesses()).map((each) => each.proposals),
    [[{ id: "02J", operation: "moveTo", status: "failed", words: [], tally: null }], []],
  );
});

await test("whoever has voted still reads what a proposal does, and how its vote stands", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const item = itemOf("a1");
  const successor = `0x${"5c".repeat(20)}` as const;
  const { operation, arguments: args } = governanceActs.moveTo(successor);
  const tally = { expiresAt: 1_800_000_000, needed: 2, approvals: 1, refusals: 0 };
  const open = { id: "03J", operation, arguments: args, status: "open", ...tally };
  const done = { ...open, id: "02J", status: "executed" };
  const body = { items: [{ ...item, proposals: [open, done] }] };
  broker.answers.set(path, { status: 200, body });
  const [listed, before] = (await wallet.businesses())[0]?.proposals ?? [];
  const words = [
    `The business goes on in the wallet ${successor}, for good; this one decides nothing more.`,
  ];
  assert.deepEqual(listed, { id: "03J", operation: "moveTo", status: "open", words, tally });
  assert.deepEqual([before?.words, before?.tally], [words, null]);
});

await test("a business that is named is found without the pages behind it", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  broker.answers.set(path, { status: 200, body: { items: [itemOf("a1")], nextCursor: "c" } });
  const { name } = await wallet.chooseBusiness(`0x${"a1".repeat(20)}`);
  assert.equal(name, "Alpine a1");
  assert.deepEqual(
    broker.paths().filter((each) => each.includes("cursor")),
    [],
  );
});

await test("a business whose status cannot be read is left out, beside others", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const items = [{ ...itemOf("a1"), status: { toString: 1 } }, itemOf("a2")];
  broker.answers.set(path, { status: 200, body: { items } });
  assert.deepEqual(
    (await wallet.businesses()).map(({ name }) => name),
    ["Alpine a2"],
  );
});

await test("a founding of which the broker tells no status is refused", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const founder = { address: addressOf("alice"), name: "Alice", isVoting: true };
  const plan = { name: "Alpine AG", environment: "live", members: [founder], rules: {} } as const;
  const told = fake.address;
  fake.status = { toString: 1 };
  fake.address = ({ salt, rules }) =>
    addressOfBusiness({
      factory,
      salt: salt as Hex32,
      charter: encodeCharter({ rules, members: [founder] } as unknown as Charter),
    });
  await refuses(wallet.foundBusiness(plan), "broker_refused", /founded a business other/);
  fake.status = "deploying";
  assert.equal((await wallet.foundBusiness(plan)).status, "deploying");
  fake.address = told;
});

await test("a founding whose answer was lost is the same one again, until it is told of, refused as known, or over", async () => {
  broker.reset();
  fake.reset();
  let at = 1_000_000;
  let status = 503;
  const answer: typeof fetch = async (url, init) => {
    const heard = await fetch(url, init);
    const isLost = url === `${broker.url}${path}` && init?.method === "POST" && status !== 201;
    return isLost ? new Response("{}", { status }) : heard;
  };
  const kept = memoryStorage();
  // Like a call that reads before another one writes.
  let isBlind = false;
  const get: WalletStorage["get"] = async (key) =>
    isBlind && key.startsWith("founding/") ? null : kept.get(key);
  const parts = { fetch: answer, now: async () => at, storage: { ...kept, get } };
  const wallet = await walletOf("alice", [broker.url], parts);
  const founder = { address: addressOf("alice"), name: "Alice", isVoting: true };
  const plan = { name: "Alpine AG", environment: "live", members: [founder], rules: {} } as const;
  fake.address = ({ salt, rules }) =>
    addressOfBusiness({
      factory,
      salt: salt as Hex32,
      charter: encodeCharter({ rules, members: [founder] } as unknown as Charter),
    });
  const found = async (name: string, as: number): Promise<void> => {
    status = as;
    const made = wallet.foundBusiness({ ...plan, name });
    if (as === 201) await made;
    else await refuses(made, "broker_refused");
  };
  await found("Alpine AG", 503);
  await found("Alpine AG", 429);
  await found("Other AG", 503);
  await found("Alpine AG", 201);
  await found("Alpine AG", 409);
  await found("Alpine AG", 503);
  at += 7 * 86_400 - 60;
  await found("Alpine AG", 503);
  isBlind = true;
  await found("Twin AG", 503);
  await found("Twin AG", 503);
  const salts = fake.founded.map(({ salt }) => salt);
  const kinds = salts.map((salt) => salts.indexOf(salt));
  assert.deepEqual(kinds, [0, 0, 2, 0, 4, 5, 6, 7, 7]);
});

await test("a list that is too long or none is refused, and never passes for an empty one", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const filler = "x".repeat(9 * 1024 * 1024);
  for (const body of [{ items: [itemOf("a1")], filler }, {}, { items: {} }]) {
    broker.answers.set(path, { status: 200, body });
    broker.answers.set("/w/inbox?limit=100", { status: 200, body });
    broker.answers.set("/w/logins?limit=100", { status: 200, body });
    await refuses(wallet.businesses(), "broker_refused", /an invalid list/);
    await refuses(wallet.inbox(), "broker_refused", /an invalid list/);
    await refuses(wallet.logins(), "broker_refused", /an invalid list/);
  }
});

await test("a list of businesses without end is not read for ever", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const endless = { status: 200, body: { items: [itemOf("a1")], nextCursor: "c" } };
  for (const each of [path, `${path}?cursor=c`]) broker.answers.set(each, endless);
  await wallet.businesses();
  assert.ok(broker.paths().filter((each) => each.includes("cursor=c")).length < 60);
});

const many = (each: object) => ({
  status: 200,
  body: { items: Array.from({ length: 250 }, (_, at) => ({ id: `id-${at}`, ...each })) },
});

await test("of a page of a list no more is taken than a page holds", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  broker.answers.set(path, many(itemOf("a1")));
  broker.answers.set("/w/inbox?limit=100", many({ kind: "something_new" }));
  broker.answers.set("/w/logins?limit=100", many({ clientName: "Shop", at: 5 }));
  const lists = [await wallet.businesses(), await wallet.inbox(), await wallet.logins()];
  assert.deepEqual(
    lists.map(({ length }) => length),
    [100, 100, 100],
  );
});

await test("of a removal and a move the list has what the broker says of them, and nothing that nests", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const removal = { member: addressOf("alice"), endsAt: 5, hasAnswered: false };
  const nested = { ...removal, more: [[1]], others: { a: 1 } };
  const items = [
    { ...itemOf("a1"), removal: nested, move: { keepNonce: 3, more: {} } },
    { ...itemOf("b2"), removal: [[1]], move: null },
  ];
  broker.answers.set(path, { status: 200, body: { items } });
  const listed = await wallet.businesses();
  assert.deepEqual(
    listed.map((each) => [each.removal, each.move]),
    [
      [removal, { keepNonce: 3 }],
      [null, null],
    ],
  );
});

const membersOf = (count: number): object[] =>
  Array.from({ length: count }, (_, at) => ({
    address: `0x${String(at).padStart(40, "a")}`,
    votingRights: true,
  }));

await test("a business has 100 members at most, and of its proposals 100 are said", async () => {
  broker.reset();
  const wallet = await walletOf("alice", [broker.url]);
  const proposals = Array.from({ length: 250 }, (_, at) => ({
    id: `p-${at}`,
    operation: "moveTo(address)",
    status: "refused",
  }));
  const items = [
    { ...itemOf("a1"), members: membersOf(100), proposals },
    { ...itemOf("b2"), members: membersOf(101) },
  ];
  broker.answers.set(path, { status: 200, body: { items } });
  const [only, ...others] = await wallet.businesses();
  assert.deepEqual([only?.charter.members.length, others], [100, []]);
  assert.deepEqual([only?.proposals.length, only?.proposals.at(-1)?.id], [100, "p-99"]);
});

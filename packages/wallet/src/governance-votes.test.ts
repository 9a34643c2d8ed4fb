import assert from "node:assert/strict";
import { test } from "node:test";
import {
  approvalDigest,
  businessCategory,
  encodeCharter,
  governanceActs,
  governanceHash,
  type Address,
  type Charter,
  type Hex32,
} from "@svc/protocol";
import { business, chainId, charter, serveBusiness } from "../test/fake-business.ts";
import { openFakeBroker, signerOf } from "../test/fake-broker.ts";
import { now } from "../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { type Wallet, WalletRefusal } from "./index.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);
const alice = addressOf("alice");
const expiresAt = now + 600;
const validUntil = expiresAt + 3600;

async function fresh(): Promise<Wallet> {
  broker.reset();
  fake.reset();
  return walletOf("alice", [broker.url]);
}

/** Puts an act of governance into the inbox. */
function put(item: Record<string, unknown>): void {
  fake.items.push({
    id: "01J",
    kind: "governance",
    category: businessCategory.governance,
    business: { address: business, name: "Alpine AG" },
    chainId,
    epoch: fake.epoch,
    nonce: fake.nonce,
    validUntil,
    expiresAt,
    requester: null,
    ...item,
  });
}

/** A charter as it travels. */
const named = ({ rules, members }: Charter, names: Record<string, string>): object => ({
  rules,
  members: members.map(({ address, isVoting }) => ({
    address,
    name: names[address] ?? "",
    votingRights: isVoting,
  })),
});

/** The identity that approved this hash in the only vote that was sent. */
function approver(hash: Hex32): string | null {
  const { signature } = fake.votes[0]?.body ?? {};
  const category = businessCategory.governance;
  const approval = { chainId, business, category, hash, epoch: fake.epoch, validUntil };
  return signerOf(approvalDigest(approval), String(signature));
}

await test("a change of the business is approved over what its arguments say", async () => {
  const wallet = await fresh();
  const next = { ...charter, rules: { ...charter.rules, data_requests: "UNANIMOUS" as const } };
  const act = governanceActs.changeCharter(encodeCharter(next));
  const current = named(charter, {});
  put({ ...act, current });
  const [entry] = await wallet.inbox();
  assert.match(entry?.words.join("\n") ?? "", /Releases of data: all voting members/);
  await wallet.vote("01J", { vote: "approve" });
  const hash = governanceHash({ ...act, nonce: fake.nonce });
  assert.equal(approver(hash), alice);
  for (const wrong of [
    { operation: "selfDestruct()" },
    { operation: "moveTo(address)" },
    { arguments: `${act.arguments}00` },
    { nonce: fake.nonce + 1 },
  ]) {
    put({ ...act, current, id: "01K", ...wrong });
    await refuses(wallet.vote("01K", { vote: "approve" }), "invalid_request");
    fake.items = [];
  }
});

await test("a change of the business says who comes, who goes and which rules change, against the chain", async () => {
  const wallet = await fresh();
  const [alicesSeat, bobsSeat, observer] = charter.members;
  assert.ok(alicesSeat !== undefined && bobsSeat !== undefined && observer !== undefined);
  const eve = `0x${"ee".repeat(20)}` as const;
  const next = {
    rules: { ...charter.rules, data_requests: "UNANIMOUS" as const },
    members: [alicesSeat, { ...observer, isVoting: true }, { address: eve, isVoting: true }],
  };
  const act = governanceActs.changeCharter(encodeCharter(next));
  const current = named(charter, { [alice]: "Alice", [bobsSeat.address]: "Bob" });
  put({
    ...act,
    // A proposer may give the others any names.
    charter: named(next, { [alice]: "Carol", [eve]: "Bob" }),
    current,
  });
  const [entry] = await wallet.inbox();
  const words = entry?.words.join("\n") ?? "";
  for (const line of [
    `New: "Bob" (${eve}), with a vote.`,
    `Changed: ${observer.address}, from now on with a vote.`,
    `No longer a member: "Bob" (${bobsSeat.address}).`,
    "Changed: Releases of data, so far more than half of the voting members.",
    `Member: "Alice" (${alice}), with a vote.`,
  ])
    assert.ok(words.includes(line), `${line} in\n${words}`);
  // A present charter that never was: nothing would seem to change.
  fake.items = [{ ...fake.items[0], id: "01K", current: named(next, {}) }];
  await refuses(wallet.vote("01K", { vote: "approve" }), "invalid_request", /changed/);
  fake.items = [{ ...fake.items[0], id: "01L", current }];
  await wallet.vote("01L", { vote: "approve" });
});

await test("what a broker leaves out, or what no signature can hold, is no question that can be answered", async () => {
  const wallet = await fresh();
  const act = governanceActs.changeCharter(encodeCharter(charter));
  const whole = { ...act, current: named(charter, {}) };
  for (const damaged of [act, { ...whole, validUntil: 2 ** 50, expiresAt: 2 ** 50 }]) {
    put({ ...damaged, id: "01M" });
    const [entry] = await wallet.inbox();
    assert.equal(entry?.words.some((words) => /Member:/.test(words)) ?? false, false);
    await assert.rejects(wallet.vote("01M", { vote: "approve" }), WalletRefusal);
    fake.items = [];
  }
  assert.equal(fake.votes.length, 0);
});

await test("a broker that asks for another vote than was proposed gets no approval, and the proposal is taken back", async () => {
  const wallet = await fresh();
  const own = await wallet.chooseBusiness(business);
  // The fake broker puts every proposal to the vote as a move.
  const proposed = wallet.propose(own, { operation: "startRemoval", member: addressOf("bob") });
  await refuses(proposed, "broker_refused", /something other than what was proposed/);
  assert.deepEqual([fake.proposed.length, fake.retracted, fake.votes], [1, ["p"], []]);
});

await test("a proposal that is over before its proposer votes is told of as over, and of no other vote", async () => {
  await fresh();
  const decided: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    if (answer.url.endsWith("/proposals")) fake.items = [];
    return answer;
  };
  const wallet = await walletOf("alice", [broker.url], { fetch: decided });
  const own = await wallet.chooseBusiness(business);
  const successor: Address = `0x${"5c".repeat(20)}`;
  const proposed = wallet.propose(own, { operation: "moveTo", successor });
  await refuses(proposed, "not_found", /look at the business again/);
  assert.deepEqual([fake.retracted, fake.votes], [["p"], []]);
});

await test("a proposer, who is shown no end of the vote, approves for 30 days at most", async () => {
  const successor: Address = `0x${"5c".repeat(20)}`;
  const month = 30 * 86_400;
  for (const [votingSeconds, votes] of [
    [month, 1],
    [month + 1, 0],
    [253_402_000_000, 0],
  ] as const) {
    const wallet = await fresh();
    const own = await wallet.chooseBusiness(business);
    fake.votingSeconds = votingSeconds;
    const proposed = wallet.propose(own, { operation: "moveTo", successor });
    if (votes === 1) assert.equal((await proposed).status, "open");
    else await refuses(proposed, "broker_refused", /something other than what was proposed/);
    assert.equal(fake.votes.length, votes);
    assert.deepEqual(fake.retracted, votes === 1 ? [] : ["p"]);
  }
});

await test("what was proposed and approved is approved again, and not taken back, where the answer was lost", async () => {
  const wallet = await fresh();
  const own = await wallet.chooseBusiness(business);
  const move = { operation: "moveTo", successor: `0x${"5c".repeat(20)}` } as const;
  const made = await wallet.propose(own, move);
  assert.deepEqual(await wallet.propose(own, move), made);
  const [first, second, ...more] = fake.votes;
  assert.deepEqual([second, more, fake.retracted], [first, [], []]);
});

// What a wallet looks at before it approves, whatever its broker says.
import assert from "node:assert/strict";
import { test } from "node:test";

import {
  businessCategory,
  encodeCharter,
  hashTypedData,
  type Charter,
  type Hex32,
} from "@svc/protocol";

import {
  business,
  chainId,
  charter,
  dataRequestItem,
  factory,
  serveBusiness,
} from "../test/fake-business.ts";
import { openFakeBroker } from "../test/fake-broker.ts";
import { now } from "../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { addressOfBusiness } from "./business-wallet.ts";
import { memoryStorage } from "./index.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);
const alice = addressOf("alice");
const expiresAt = now + 600;

/** Approves the only item of the inbox. */
async function approve(item: Record<string, unknown>, at = now) {
  broker.reset();
  fake.items = [item];
  fake.votes = [];
  const wallet = await walletOf("alice", [broker.url], { now: async () => at });
  return wallet.vote("01J", { vote: "approve" });
}

await test("a member without a vote approves nothing", async () => {
  fake.reset();
  const members = charter.members.map((each) =>
    each.address === alice ? { ...each, isVoting: false } : each,
  );
  fake.charter = { ...charter, members };
  await refuses(approve(dataRequestItem), "invalid_request", /has no vote/);
  assert.deepEqual(fake.votes, []);
  fake.reset();
  assert.equal((await approve(dataRequestItem)).status, "open");
});

await test("who changes a vote that the broker may have is told of it, and sends no other", async () => {
  fake.reset();
  broker.reset();
  fake.items = [dataRequestItem];
  const wallet = await walletOf("alice", [broker.url]);
  await refuses(wallet.vote("01Q", { vote: "reject" }), "not_found", /identity$/);
  await wallet.vote("01J", { vote: "approve" });
  await refuses(wallet.vote("01J", { vote: "reject" }), "not_found", /another vote on it before/);
  assert.equal(fake.votes.length, 1);
});

await test("only approve is an approval, and nothing but a vote is one", async () => {
  fake.reset();
  broker.reset();
  fake.items = [dataRequestItem];
  const wallet = await walletOf("alice", [broker.url]);
  for (const vote of ["Approve", "no", "", undefined] as unknown as "approve"[])
    await refuses(wallet.vote("01J", { vote }), "invalid_input", /approve or reject/);
  assert.deepEqual(broker.received, []);
});

await test("nothing is approved once its time is over", async () => {
  fake.reset();
  await refuses(approve(dataRequestItem, expiresAt + 1), "expired", /has ended/);
  assert.deepEqual(fake.votes, []);
  assert.equal((await approve(dataRequestItem, expiresAt)).status, "open");
});

const { requestId: _requestId, ...terms } = dataRequestItem;
const login = {
  ...terms,
  kind: "business_login",
  category: businessCategory.login,
  issuer: broker.url,
  clientId: "c1",
  clientName: "Shop",
  scope: "openid business",
  actingMember: addressOf("bob"),
};

await test("a vote on a login is on that login: its session is the id of the vote", async () => {
  fake.reset();
  await refuses(approve({ ...login, session: "01K" }), "invalid_request", /another than the vote/);
  assert.deepEqual(fake.votes, []);
  assert.equal((await approve({ ...login, session: "01J" })).status, "open");
});

await test("who logs in for a business is shown by the whole address, and has a vote in it", async () => {
  fake.reset();
  const bob = addressOf("bob");
  const alike = `${bob.slice(0, 6)}${"0".repeat(32)}${bob.slice(-4)}`;
  const observer = charter.members.find(({ isVoting }) => !isVoting)?.address;
  for (const actingMember of [alike, observer, bob]) {
    const item = { ...login, session: "01J", actingMember };
    fake.items = [item];
    const [entry] = await (await walletOf("alice", [broker.url])).inbox();
    assert.ok(entry?.words[0]?.startsWith(`${actingMember} wants to log in`), entry?.words[0]);
    if (actingMember === bob) assert.equal((await approve(item)).status, "open");
    else await refuses(approve(item), "invalid_request", new RegExp(`${actingMember} has no vote`));
  }
});

await test("under one id one thing is shown, and a vote is on that", async () => {
  broker.reset();
  fake.reset();
  const other = { ...dataRequestItem, purpose: "To do something else." };
  fake.items = [dataRequestItem, other];
  const wallet = await walletOf("alice", [broker.url]);
  const shown = await wallet.inbox();
  assert.deepEqual(
    shown.map(({ words }) => words[1]),
    [`Purpose: ${JSON.stringify(dataRequestItem.purpose)}.`],
  );
  for (const items of [[other], [other, dataRequestItem]]) {
    fake.items = items;
    await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  }
  assert.deepEqual(fake.votes, []);
  fake.items = [dataRequestItem, other];
  assert.equal((await wallet.vote("01J", { vote: "approve" })).status, "open");
});

/** A request to sign a document whose domain names its chain so. */
const request = (named: unknown, type: string): Record<string, unknown> => {
  const types = {
    EIP712Domain: [{ name: "chainId", type }],
    Agreement: [{ name: "value", type: "uint256" }],
  };
  const domain = { chainId: named };
  const typedData = { domain, types, primaryType: "Agreement", message: { value: 1 } };
  return {
    ...dataRequestItem,
    kind: "signature_request",
    category: businessCategory.signature,
    messageKind: "TYPED_DATA",
    typedData,
    digest: hashTypedData(typedData),
  };
};

await test("a document is for the chain that its domain names as a number, and as nothing that passes for one", async () => {
  fake.reset();
  for (const [named, type] of [
    [[chainId], "uint256[]"],
    [1, "uint256"],
    ["", "string"],
  ] as const)
    await refuses(approve(request(named, type)), "invalid_request", /for another chain/);
  assert.deepEqual(fake.votes, []);
  for (const named of [chainId, String(chainId), `0x${chainId.toString(16)}`])
    assert.equal((await approve(request(named, "uint256"))).status, "open");
});

const salt: Hex32 = `0x${"5a".repeat(32)}`;
/** An invitation to found a business of these members, all of one name. */
const invite = (own: Charter, name = "Bob"): Record<string, unknown> => ({
  id: "01J",
  kind: "invitation",
  business: {
    address: addressOfBusiness({ factory, charter: encodeCharter(own), salt }),
    name: "Alpine AG",
  },
  chainId,
  expiresAt,
  requester: null,
  factory,
  salt,
  deadline: expiresAt,
  charter: {
    rules: own.rules,
    members: own.members.map(({ address, isVoting }) => ({
      address,
      name,
      votingRights: isVoting,
    })),
  },
});

await test("an invitation to a roster without this identity is not signed", async () => {
  fake.reset();
  const others = charter.members.filter(({ address }) => address !== alice);
  const refusal = approve(invite({ ...charter, members: others }));
  await refuses(refusal, "invalid_request", /not on the roster/);
  assert.deepEqual(fake.votes, []);
  assert.equal((await approve(invite(charter))).status, "open");
});

await test("a vote is sent again to no broker that was taken off the list", async () => {
  fake.reset();
  const storage = memoryStorage();
  fake.items = [dataRequestItem];
  fake.votes = [];
  await (await walletOf("alice", [broker.url], { storage })).vote("01J", { vote: "approve" });
  const without = await walletOf("alice", [], { storage });
  await refuses(without.vote("01J", { vote: "approve" }), "not_found");
  assert.equal(fake.votes.length, 1);
});

await test("a member without a vote logs in for no business", async () => {
  broker.reset();
  fake.reset();
  broker.numberMatching = false;
  broker.claims = {
    scopes: ["openid", "business"],
    client_id: "c1",
    exp: 1_000_900,
    valid_until: 1_000_900 + 3600,
  };
  const members = charter.members.map((each) =>
    each.address === alice ? { ...each, isVoting: false } : each,
  );
  const own = fake.charter;
  fake.charter = { ...charter, members };
  const wallet = await walletOf("alice", [broker.url]);
  await refuses(wallet.approve(broker.qrLink(), { business }), "invalid_request", /no vote/);
  assert.equal(broker.status, "waiting");
  fake.charter = own;
  assert.equal((await wallet.approve(broker.qrLink(), { business })).kind, "delivered");
});

await test("no approval of a login for a business counts for longer than a day and an hour", async () => {
  const day = now + 86_400;
  for (const exp of [day, day + 1, 253_402_000_000]) {
    broker.reset();
    fake.reset();
    broker.numberMatching = false;
    const asked = { scopes: ["openid", "business"], client_id: "c1" };
    broker.claims = { ...asked, exp, valid_until: exp + 3600 };
    const wallet = await walletOf("alice", [broker.url]);
    const approved = wallet.approve(broker.qrLink(), { business });
    if (exp === day) assert.equal((await approved).kind, "delivered");
    else await refuses(approved, "forged_request", /longer than logins do/);
  }
});

await test("an invitation whose members are called otherwise than it was shown is looked at again", async () => {
  broker.reset();
  fake.reset();
  const wallet = await walletOf("alice", [broker.url]);
  fake.items = [invite(charter)];
  await wallet.inbox();
  fake.items = [invite(charter, "Mallory")];
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  fake.items = [invite(charter)];
  assert.equal((await wallet.vote("01J", { vote: "approve" })).status, "open");
});

await test("of an inbox without end no more is read than a wallet can hold: the rest can be rejected, or waits", async () => {
  broker.reset();
  fake.reset();
  const path = "/w/inbox?limit=100";
  const serve = (ids: readonly string[], length: number): void => {
    for (const [at, id] of ids.entries()) {
      const item = { ...dataRequestItem, id, requestId: id, purpose: "x".repeat(length) };
      const nextCursor = ids[at + 1];
      const body = { items: [item], ...(nextCursor === undefined ? {} : { nextCursor }) };
      broker.answers.set(at === 0 ? path : `${path}&cursor=${id}`, { status: 200, body });
    }
  };
  const ids = Array.from({ length: 18 }, (_, at) => `q-${at}`);
  serve(ids, 1024 * 1024);
  const wallet = await walletOf("alice", [broker.url]);
  const shown = await wallet.inbox();
  assert.deepEqual(
    shown.map(({ id, item }) => [id, item !== null]),
    ids.map((id, at) => [id, at < 15]),
  );
  await refuses(wallet.vote("q-17", { vote: "approve" }), "invalid_request", /cannot read/);
  assert.equal((await wallet.vote("q-16", { vote: "reject" })).status, "open");
  serve(["q-17"], 1024 * 1024);
  await refuses(wallet.vote("q-17", { vote: "approve" }), "invalid_request", /not what was shown/);
  await wallet.inbox();
  assert.equal((await wallet.vote("q-17", { vote: "approve" })).status, "open");
});

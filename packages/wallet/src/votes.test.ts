import assert from "node:assert/strict";
import { test } from "node:test";
import {
  approvalDigest,
  bytesOfText,
  businessCategory,
  businessLoginHash,
  declineDigest,
  encodeCharter,
  hashTypedData,
  hexOfBytes,
  keepDigest,
  personalDigest,
  releaseHash,
  type BusinessCategory,
  type Hex32,
} from "@svc/protocol";
import {
  audience,
  business,
  chainId,
  charter,
  factory,
  invitationSigner,
  serveBusiness,
} from "../test/fake-business.ts";
import { digits, loginId, openFakeBroker, signerOf } from "../test/fake-broker.ts";
import { now } from "../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../test/test-wallet.ts";
import { addressOfBusiness } from "./business-wallet.ts";
import { memoryStorage, type Wallet } from "./index.ts";

await using broker = await openFakeBroker();
const fake = serveBusiness(broker);
const alice = addressOf("alice");
const expiresAt = now + 600;
const validUntil = expiresAt + 3600;
const salt: Hex32 = `0x${"5a".repeat(32)}`;

async function fresh(): Promise<Wallet> {
  broker.reset();
  fake.reset();
  return walletOf("alice", [broker.url]);
}

/** Puts an item into the inbox. */
function put(item: Record<string, unknown>): void {
  fake.items.push({
    id: "01J",
    business: { address: business, name: "Alpine AG" },
    chainId,
    epoch: fake.epoch,
    validUntil,
    expiresAt,
    requester: { name: "Demo Bank", domain: "bank.example" },
    ...item,
  });
}

const dataRequest = {
  kind: "data_request",
  category: businessCategory.data,
  requestId: "01J",
  audience,
  required: ["BUSINESS_LEGAL_NAME"],
  optional: ["BUSINESS_LEI", "BUSINESS_DUNS"],
  fixedOptional: null,
  purpose: "To open an account.",
  deadline: expiresAt,
};

const textRequest = (message: string, digest?: string): Record<string, unknown> => ({
  kind: "signature_request",
  category: businessCategory.signature,
  messageKind: "TEXT",
  message,
  digest: digest ?? hexOfBytes(personalDigest(bytesOfText(message))),
  purpose: "To sign a contract.",
});

/** The identity that approved this hash in the only vote that was sent. */
function approver(category: BusinessCategory, hash: Hex32): string | null {
  const body = fake.votes[0]?.body ?? {};
  assert.deepEqual([body["epoch"], body["validUntil"]], [fake.epoch, validUntil]);
  const approval = { chainId, business, category, hash, epoch: fake.epoch, validUntil };
  return signerOf(approvalDigest(approval), String(body["signature"]));
}

await test("what the business does not have goes nowhere: it may be withheld, and may go missing after it was shown", async () => {
  const wallet = await fresh();
  put(dataRequest);
  await wallet.inbox();
  put({ ...dataRequest, optional: ["BUSINESS_LEI"], unavailable: ["BUSINESS_DUNS"] });
  const outcome = await wallet.vote("01J", { vote: "approve", without: ["BUSINESS_DUNS"] });
  assert.equal(outcome.status, "open");
  assert.deepEqual(fake.votes[0]?.body["optional"], ["BUSINESS_LEI"]);
});

await test("a data request is approved over what it shows, without what is withheld", async () => {
  const wallet = await fresh();
  put(dataRequest);
  const [entry] = await wallet.inbox();
  assert.match(
    entry?.words.join("\n") ?? "",
    /"Demo Bank" \(bank\.example, verified by localhost.*\n.*open an account/,
  );
  const outcome = await wallet.vote("01J", { vote: "approve", without: ["BUSINESS_DUNS"] });
  assert.deepEqual(outcome, { id: "01J", kind: "data_request", vote: "approve", status: "open" });
  const { requestId, required, purpose, deadline } = dataRequest;
  const optional = ["BUSINESS_LEI"];
  const release = { requestId, audience, business, required, optional, purpose, deadline };
  assert.equal(approver(businessCategory.data, releaseHash(release)), alice);
  assert.deepEqual(fake.votes[0]?.body["optional"], optional);
  const [remembered] = await wallet.history();
  assert.deepEqual(
    [remembered?.action, remembered?.business, remembered?.fields, remembered?.withheld],
    ["vote", business, ["BUSINESS_LEGAL_NAME", "BUSINESS_LEI"], ["BUSINESS_DUNS"]],
  );
});

await test("what another member fixed is approved exactly, or not at all", async () => {
  const wallet = await fresh();
  put({ ...dataRequest, fixedOptional: ["BUSINESS_DUNS"] });
  await refuses(
    wallet.vote("01J", { vote: "approve", without: ["BUSINESS_DUNS"] }),
    "invalid_input",
    /another member/,
  );
  await wallet.vote("01J", { vote: "approve" });
  assert.deepEqual(fake.votes[0]?.body["optional"], ["BUSINESS_DUNS"]);
});

await test("an approval is of what the inbox showed, and not of what came in its place", async () => {
  const wallet = await fresh();
  put(dataRequest);
  await wallet.inbox();
  fake.items = [];
  put({ ...dataRequest, required: ["BUSINESS_LEGAL_NAME", "BUSINESS_TRADE_NAME"] });
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  assert.deepEqual(fake.votes, []);
  await wallet.inbox();
  await wallet.vote("01J", { vote: "approve" });
  assert.equal(fake.votes.length, 1);
});

await test("what other members decide meanwhile does not ask for a second look", async () => {
  const wallet = await fresh();
  put(dataRequest);
  await wallet.inbox();
  fake.items = [];
  fake.epoch += 1;
  put({ ...dataRequest, fixedOptional: [] });
  await wallet.vote("01J", { vote: "approve" });
  assert.deepEqual(fake.votes[0]?.body["optional"], []);
});

await test("an optional field that was shown as withheld is released by no approval, whatever another member has fixed", async () => {
  const wallet = await fresh();
  for (const [shown, changed] of [
    [["BUSINESS_LEI"], null],
    [[], ["BUSINESS_DUNS"]],
  ]) {
    fake.items = [];
    put({ ...dataRequest, fixedOptional: shown });
    await wallet.inbox();
    fake.items = [];
    fake.epoch += 1;
    put({ ...dataRequest, fixedOptional: changed });
    await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /not what was shown/);
  }
  assert.equal(fake.votes.length, 0);
  await wallet.inbox();
  await wallet.vote("01J", { vote: "approve" });
  assert.deepEqual(fake.votes[0]?.body["optional"], ["BUSINESS_DUNS"]);
});

await test("what was shown as staying is withheld by name where a change made the choice open again", async () => {
  const wallet = await fresh();
  put({ ...dataRequest, fixedOptional: ["BUSINESS_LEI"] });
  await wallet.inbox();
  fake.items = [];
  fake.epoch += 1;
  put(dataRequest);
  await wallet.vote("01J", { vote: "approve", without: ["BUSINESS_DUNS"] });
  assert.deepEqual(fake.votes[0]?.body["optional"], ["BUSINESS_LEI"]);
});

await test("a document is signed by its own digest, never by the one that was sent", async () => {
  const wallet = await fresh();
  put(textRequest("We agree.", `0x${"11".repeat(32)}`));
  const [entry] = await wallet.inbox();
  assert.match(entry?.refusal ?? "", /digest/);
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /digest/);
  fake.items = [];
  put(textRequest("We agree."));
  await wallet.inbox();
  await wallet.vote("01J", { vote: "approve" });
  const hash = hexOfBytes(personalDigest(bytesOfText("We agree.")));
  assert.equal(approver(businessCategory.signature, hash), alice);
});

const typed = (primaryType: string, domain: Record<string, unknown> = { name: "Other" }) => {
  const types = { [primaryType]: [{ name: "value", type: "uint256" }] };
  const typedData = { domain, types, primaryType, message: { value: 1 } };
  return {
    kind: "signature_request",
    category: businessCategory.signature,
    messageKind: "TYPED_DATA",
    typedData,
    digest: hashTypedData(typedData),
    purpose: "To sign a contract.",
  };
};

await test("sign-ins elsewhere, permits, account operations, other chains and our own types are never approved", async () => {
  const wallet = await fresh();
  const signIn = "evil.example wants you to sign in with your Ethereum account:\n0x00";
  const keep = { Keep: [{ name: "nonce", type: "uint256" }] };
  for (const item of [
    textRequest(signIn),
    typed("PermitSingle"),
    typed("SafeTx"),
    typed("PackedUserOperation"),
    typed("Agreement", { name: "svc" }),
    typed("Agreement", { chainId: 1 }),
    {
      ...typed("Keep"),
      typedData: { domain: {}, types: keep, primaryType: "Keep", message: { nonce: 1 } },
    },
  ]) {
    fake.items = [];
    put(item);
    await refuses(
      wallet.vote("01J", { vote: "approve", ...accepting("permit", "blind-hash") }),
      "invalid_request",
    );
  }
  assert.deepEqual(fake.votes, []);
  fake.items = [];
  put(typed("Agreement", { chainId }));
  await wallet.vote("01J", { vote: "approve" });
});

await test("a sign-in to the requester's own domain is approved, and a bare hash once it is accepted", async () => {
  const wallet = await fresh();
  put(textRequest("bank.example wants you to sign in with your Ethereum account:\n0x00"));
  await wallet.vote("01J", { vote: "approve" });
  put({ ...textRequest("ab".repeat(32)), id: "01K" });
  const asker =
    /^ConcernsRefusal: "Demo Bank" \(bank\.example, verified by localhost:\d+\) asks, and .* bare hash/;
  await assert.rejects(wallet.vote("01K", { vote: "approve" }), asker);
  await wallet.vote("01K", { vote: "approve", ...accepting("blind-hash") });
  assert.equal(fake.votes.length, 2);
});

await test("an approval takes a vote on the chain, in its epoch, and the chain that was there before", async () => {
  const wallet = await fresh();
  put(dataRequest);
  const approve = async (): Promise<unknown> => wallet.vote("01J", { vote: "approve" });
  fake.epoch += 1;
  await refuses(approve(), "invalid_request", /changed/);
  fake.epoch -= 1;
  fake.charter = { ...charter, members: charter.members.filter((each) => each.address !== alice) };
  await refuses(approve(), "invalid_request", /no vote/);
  fake.charter = charter;
  fake.chainId += 1;
  await refuses(approve(), "chain_refused");
  fake.chainId -= 1;
  Object.assign(fake.items[0] ?? {}, { chainId: 1 });
  await refuses(approve(), "invalid_request", /another chain/);
  Object.assign(fake.items[0] ?? {}, { chainId, validUntil: validUntil + 1 });
  await refuses(approve(), "invalid_request", /longer/);
  assert.deepEqual(fake.votes, []);
});

await test("a vote on somebody's login names the login, the client and who acts", async () => {
  const wallet = await fresh();
  const actingMember = addressOf("bob");
  const login = { session: "01J", issuer: broker.url, clientId: "c1", scope: "openid business" };
  const kind = { kind: "business_login", category: businessCategory.login, clientName: "Shop" };
  put({ ...kind, ...login, actingMember, issuer: "https://evil.example" });
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request");
  fake.items = [];
  put({ ...kind, ...login, actingMember });
  await wallet.vote("01J", { vote: "approve" });
  const hash = businessLoginHash({ ...login, requester: "bank.example", business, actingMember });
  assert.equal(approver(businessCategory.login, hash), alice);
});

await test("a rejection is signed for the address that it goes to, also where nothing could be approved", async () => {
  const wallet = await fresh();
  put({ kind: "something_new" });
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request");
  assert.equal((await wallet.vote("01J", { vote: "reject" })).vote, "reject");
  const digest = declineDigest({ request: "01J", connection: `${broker.url}/w/votes/01J` });
  assert.equal(signerOf(digest, String(fake.votes[0]?.body["signature"])), alice);
});

await test("the same vote again sends the same bytes, and a different vote is refused", async () => {
  const wallet = await fresh();
  put(dataRequest);
  await wallet.vote("01J", { vote: "approve" });
  await wallet.vote("01J", { vote: "approve" });
  assert.deepEqual(fake.votes[0], fake.votes[1]);
  await refuses(wallet.vote("01J", { vote: "reject" }), "not_found");
  const withholding = wallet.vote("01J", { vote: "approve", without: ["BUSINESS_DUNS"] });
  await refuses(withholding, "invalid_input", /approved the release of BUSINESS_DUNS/);
  assert.equal(fake.votes.length, 2);
});

await test("a vote is in the history once, from before it is sent, however it, its answer or its call is lost", async () => {
  for (const [vote, arrives, before, after] of [
    ["approve", true, "sent", "approved"],
    ["approve", false, "sent", "approved"],
    ["reject", true, "declined", "declined"],
    ["reject", false, "declined", "declined"],
  ] as const) {
    broker.reset();
    fake.reset();
    let [isKilled, isLost] = [true, true];
    const losing: typeof fetch = async (url, init) => {
      const loses = isLost && url === `${broker.url}/w/votes/01J`;
      if (loses && arrives) await fetch(url, init);
      if (loses) throw new TypeError("lost");
      return fetch(url, init);
    };
    const kept = memoryStorage();
    const list: typeof kept.list = async (folder) => {
      if (isKilled && folder === "vote") throw new TypeError("killed");
      return kept.list(folder);
    };
    const parts = { fetch: losing, storage: { ...kept, list } };
    const wallet = await walletOf("alice", [broker.url], parts);
    put(dataRequest);
    const entries = async () => (await wallet.history()).map(({ id, outcome }) => [id, outcome]);
    await assert.rejects(wallet.vote("01J", { vote }), /killed/);
    assert.deepEqual(await entries(), []);
    isKilled = false;
    await refuses(wallet.vote("01J", { vote }), "unreachable");
    assert.deepEqual(await entries(), [["01J", before]]);
    isLost = false;
    await wallet.vote("01J", { vote });
    assert.deepEqual(await entries(), [["01J", after]]);
  }
});

await test("a kept vote that cannot be read keeps no other vote back", async () => {
  broker.reset();
  fake.reset();
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  put(dataRequest);
  await wallet.vote("01J", { vote: "approve" });
  for (const key of await storage.list("vote")) await storage.put(key, "");
  for (const vote of ["approve", "reject"] as const) {
    put({ ...dataRequest, id: "01K", requestId: "01K" });
    await wallet.vote("01K", { vote });
  }
  assert.equal(fake.votes.length, 3);
  assert.equal((await storage.list("vote")).length, 1);
});

await test("a kept chain that cannot be read is said to be that, and no other is taken in its place", async () => {
  broker.reset();
  fake.reset();
  const storage = memoryStorage();
  const wallet = await walletOf("alice", [broker.url], { storage });
  put(dataRequest);
  await wallet.inbox();
  const [key] = await storage.list("chain");
  assert.ok(key);
  await storage.put(key, "");
  await refuses(wallet.inbox(), "damaged_state", new RegExp(`cannot read ${key}`));
  await refuses(wallet.vote("01J", { vote: "approve" }), "damaged_state");
  await storage.remove(key);
  await wallet.vote("01J", { vote: "approve" });
});

await test("any vote of a member who is being removed ends the removal that the chain shows, and is the same again", async () => {
  for (const vote of ["approve", "reject"] as const) {
    const wallet = await fresh();
    put(dataRequest);
    fake.removal = { member: alice, endsAt: now + 86_400, keepNonce: 11 };
    assert.equal((await wallet.vote("01J", { vote })).removal, "ended");
    assert.equal((await wallet.vote("01J", { vote })).removal, "ended");
    const digest = keepDigest({ chainId, business, nonce: 11 });
    const signers = fake.kept.map((signature) => signerOf(digest, String(signature)));
    assert.deepEqual(signers, [alice, alice]);
  }
});

await test("no vote signs an end of the removal of somebody else", async () => {
  const wallet = await fresh();
  put(dataRequest);
  fake.removal = { member: addressOf("bob"), endsAt: now + 86_400, keepNonce: 11 };
  await wallet.vote("01J", { vote: "approve" });
  assert.deepEqual(fake.kept, []);
});

await test("a vote on what cannot be read says that the removal is still open", async () => {
  const wallet = await fresh();
  put({ kind: "something_new" });
  fake.removal = { member: alice, endsAt: now + 86_400, keepNonce: 11 };
  assert.equal((await wallet.vote("01J", { vote: "reject" })).removal, "open");
  assert.deepEqual(fake.kept, []);
});

const invitation = (changed: Record<string, unknown> = {}): Record<string, unknown> => ({
  kind: "invitation",
  business: {
    address: addressOfBusiness({ factory, charter: encodeCharter(charter), salt }),
    name: "Alpine AG",
  },
  requester: null,
  factory,
  salt,
  deadline: expiresAt,
  charter: {
    rules: charter.rules,
    members: charter.members.map(({ address, isVoting }) => ({
      address,
      name: "Somebody",
      votingRights: isVoting,
    })),
  },
  ...changed,
});

await test("an invitation is signed over roster and rules, for the address that follows from them", async () => {
  const wallet = await fresh();
  put(invitation({ business: { address: business, name: "Alpine AG" } }));
  await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /address/);
  fake.items = [];
  put(invitation());
  await wallet.vote("01J", { vote: "approve" });
  const body = fake.votes[0]?.body ?? {};
  assert.deepEqual(Object.keys(body), ["vote", "signature"]);
  assert.equal(invitationSigner({ salt, charter, deadline: expiresAt }, body["signature"]), alice);
});

await test("nothing is approved that would end at another time than the one that is shown", async () => {
  const wallet = await fresh();
  for (const asked of [dataRequest, invitation()]) {
    put({ ...asked, deadline: expiresAt + 86_400 });
    const [entry] = await wallet.inbox();
    assert.match(entry?.refusal ?? "", /at another time than is shown/);
    await refuses(wallet.vote("01J", { vote: "approve" }), "invalid_request", /another time/);
    fake.items = [];
  }
  assert.deepEqual(fake.votes, []);
});

await test("a founder signs what the others are asked to sign", async () => {
  const wallet = await fresh();
  const members = [
    { address: alice, name: "Alice", isVoting: true },
    { address: addressOf("bob"), name: "Bob", isVoting: true },
  ];
  const plan = { name: "Alpine AG", environment: "live", members, rules: {} } as const;
  await refuses(wallet.foundBusiness(plan), "broker_refused", /a business other/);
  const rules = { ...charter.rules, governance: "UNANIMOUS" } as const;
  fake.address = (body) =>
    addressOfBusiness({
      factory,
      charter: encodeCharter({ rules, members }),
      salt: body["salt"] as Hex32,
    });
  const { deadline, status, words } = await wallet.foundBusiness(plan);
  assert.equal(words[0], 'The other members are invited to found the business "Alpine AG".');
  const body = fake.founded[1] ?? {};
  assert.deepEqual([status, body["rules"]], ["inviting", rules]);
  const signed = { salt: body["salt"] as Hex32, charter: { rules, members }, deadline };
  assert.equal(invitationSigner(signed, body["signature"]), alice);
});

await test("a login for a business carries the acting member's approval", async () => {
  const wallet = await fresh();
  const terms = { scopes: ["openid", "business"], client_id: "c1", exp: 1_000_900 };
  broker.claims = { ...terms, valid_until: 1_000_900 + 3601 };
  const link = broker.sameDeviceLink();
  await refuses(wallet.approve(link, { business }), "forged_request", /longer/);
  const again = await fresh();
  broker.claims = { ...terms, valid_until: 1_000_900 + 3600 };
  const outcome = await again.approve(broker.qrLink(), { code: digits, business });
  assert.ok(outcome.kind === "delivered" && outcome.refusal === undefined);
  const part = outcome.result["business"] as Record<string, unknown>;
  const hash = businessLoginHash({
    session: loginId,
    issuer: broker.url,
    clientId: "c1",
    requester: "shop.example",
    scope: "openid business",
    business,
    actingMember: alice,
  });
  const category = businessCategory.login;
  const approval = { chainId, business, category, hash, epoch: 3, validUntil: 1_004_500 };
  assert.equal(signerOf(approvalDigest(approval), String(part["approval"])), alice);
});

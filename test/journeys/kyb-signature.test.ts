// A business signs what a merchant asks it to, and any verifier accepts what comes of it, for ever; a request that comes
// to nothing says why and no more.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Address,
  approvalDigest,
  businessCategory,
  encodeCharter,
  governanceActs,
  type GovernanceAct,
  governanceHash,
  type Hex,
  signDigest,
  type TypedDataDocument,
} from "@svc/protocol";
import { hashMessage, hashTypedData, parseAbi } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { setBusinessVerified, suspendBusiness } from "../../service/src/kyb/index.ts";
import { joinApprovals } from "../../service/src/kyb/ballot/ballots.ts";
import { loadWalletCalls } from "../../service/src/kyb/business/wallet-calls.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { actAs, openBusinessPage } from "../business-login.ts";
import { type Answer, reasonOf, type TestBusiness } from "../kyb-world.ts";
import { openSignatureWorld, signaturesPath, someText } from "../kyb-signature-world.ts";

await using world = await openSignatureWorld();
const { ctx, business, reader } = world;

const signatureOf = async (id: string): Promise<Answer> =>
  world.call("GET", `${signaturesPath}/${id}/signature`);

const accepts = async (address: Address, message: string): Promise<boolean> =>
  reader.verifyMessage({ address, message, signature: `0x01${hashMessage(message).slice(2)}` });

const typedData = {
  domain: { name: "Shop", version: "1", chainId: ctx.chain.chainId },
  types: { Terms: [{ name: "text", type: "string" }] },
  primaryType: "Terms",
  message: { text: "We accept the terms." },
} as const;
const typedRequest = { messageKind: "TYPED_DATA", message: undefined, typedData };

const acceptsTyped = async (text: string): Promise<boolean> => {
  const document = { ...typedData, message: { text } };
  const signature: Hex = `0x01${hashTypedData(document).slice(2)}`;
  return reader.verifyTypedData({ address: business.address, signature, ...document });
};

const elsewhere: Address = `0x${"ab".repeat(20)}`;

/** How many of its members the merchant sees by name. */
async function countNames(address: Address): Promise<number> {
  const { body } = await world.call("GET", `/api/v1/kyb/members/${address}`);
  return (body["members"] as { name?: string }[]).filter(({ name }) => name !== undefined).length;
}

/** A request to that business. */
async function asked(of: TestBusiness): Promise<string> {
  return world.begin({ businessWalletAddress: of.address, message: `For ${of.name}` });
}

await test("a business signs a text: two of three approve, it is recorded, and everybody can check it", async () => {
  const made = await world.askSignature();
  const id = String(made.body["requestId"]);
  const createdAt = Number(made.body["createdAt"]);
  const digest = hashMessage(someText.message);
  assert.equal(made.status, 201);
  assert.deepEqual(made.body, {
    requestId: id,
    businessWalletAddress: business.address,
    messageKind: "TEXT",
    digest,
    purpose: someText.purpose,
    status: "pending_approval",
    createdAt,
    expiresAt: createdAt + 86_400,
  });
  assert.equal(await accepts(business.address, someText.message), false);
  assert.deepEqual((await world.voteAs("alice", id)).body, { id, status: "open" });
  assert.deepEqual((await world.call("GET", `${signaturesPath}/${id}`)).body, made.body);
  assert.deepEqual(reasonOf(await signatureOf(id)), [404, "not_signed"]);
  assert.equal(await accepts(business.address, someText.message), false, "one is not enough");
  assert.equal(await countNames(business.address), 0);
  assert.deepEqual((await world.voteAs("bob", id)).body, { id, status: "approved" });
  await world.reach(id, "signed");
  assert.equal(await countNames(business.address), 3);
  const { body } = await signatureOf(id);
  const { signedAt, transactionHash } = body as { signedAt: number; transactionHash: Hex };
  assert.deepEqual(body, {
    requestId: id,
    businessWalletAddress: business.address,
    signature: `0x01${digest.slice(2)}`,
    digest,
    signedAt,
    transactionHash,
    verification: {
      method: "eip1271",
      contract: business.address,
      chainId: ctx.chain.chainId,
      selector: "0x1626ba7e",
    },
  });
  assert.ok(signedAt >= createdAt);
  const receipt = await reader.getTransactionReceipt({ hash: transactionHash });
  assert.deepEqual([receipt.status, receipt.to], ["success", business.address]);
  assert.ok(await accepts(business.address, someText.message));
  assert.equal(await accepts(business.address, `${someText.message} `), false);
});

await test("`signed` is delivered with the signature, after the transaction", async () => {
  const message = "Announced terms";
  const { requestId, ...signed } = await world.sign({ message });
  const events = await world.eventsOf(String(requestId));
  assert.deepEqual(
    events.map(({ event, seq, stream_id: stream }) => [event, seq, stream]),
    [
      ["kyb.signature_request.pending_approval", 1, requestId],
      ["kyb.signature_request.signed", 2, requestId],
    ],
  );
  const last = events[1];
  const delivered = await world.receiver.arrivalOf(last?.event_id ?? "");
  assert.deepEqual(JSON.parse(delivered.body), last);
  assert.deepEqual(last?.data, {
    request_id: requestId,
    business_wallet_address: business.address,
    message_kind: "TEXT",
    digest: hashMessage(message),
    status: "signed",
    expires_at: last?.data["expires_at"],
    signature: signed["signature"],
    signed_at: signed["signedAt"],
    transaction_hash: signed["transactionHash"],
    verification: {
      method: "eip1271",
      contract: business.address,
      chain_id: ctx.chain.chainId,
      selector: "0x1626ba7e",
    },
  });
});

await test("a business signs typed data, and no other text in the same type", async () => {
  const signed = await world.sign(typedRequest, ["bob", "carol"]);
  assert.equal(signed["digest"], hashTypedData(typedData));
  assert.ok(await acceptsTyped("We accept the terms."));
  assert.equal(await acceptsTyped("We pay the bill."), false);
});

await test("what was signed before is signed at once when it is asked again", async () => {
  const first = await world.sign({ message: "Twice" });
  const again = await world.sign({ message: "Twice" });
  assert.notEqual(again["requestId"], first["requestId"]);
  assert.equal(again["transactionHash"], first["transactionHash"]);
});

await test("a signature outlives its approvals, its roster and its signers, until the members take it back", async () => {
  const own = await world.found({ members: ["erin", "frank", "grace"], name: "Dauer AG" });
  const { address } = own;
  const message = "Lasting terms";
  const id = await world.begin({ businessWalletAddress: address, message });
  const { validUntil } = (await world.findVote("erin", id)) as unknown as { validUntil: number };
  for (const name of ["erin", "frank"]) await world.voteAs(name, id);
  await world.reach(id, "signed");
  await world.advance(validUntil - ctx.clock.now() + 1);
  assert.ok(await accepts(address, message), "after validUntil");
  await world.govern(
    "erin",
    { operation: "changeCharter", members: world.rosterOf(["grace", "heidi"]) },
    { business: address, voters: ["erin", "frank"] },
  );
  await world.reachEpoch(address, 1);
  assert.ok(await accepts(address, message), "after both signers were removed");
  assert.equal(await countNames(address), 2, "nobody who left is shown");
  await world.advance(400 * 86_400);
  assert.ok(await accepts(address, message), "after a year");
  assert.deepEqual((await signatureOf(id)).status, 200);
  assert.equal(await accepts(address, someText.message), false, "what another business signed");
  const act = { operation: "withdraw", hash: hashMessage(message) };
  await world.govern("grace", act, { business: address, voters: ["grace", "heidi"] });
  await world.until("it was taken back", async () =>
    (await accepts(address, message)) ? null : true,
  );
  const path = `/w/businesses/${address}/proposals`;
  const twice = await world.walletCall("grace", "POST", path, { body: act });
  assert.deepEqual(reasonOf(twice), [404, "not_signed"]);
  const again = await world.begin({ businessWalletAddress: address, message });
  for (const name of ["grace", "heidi"]) await world.voteAs(name, again);
  const ended = await world.reach(again, "failed");
  assert.equal(ended["reason"], "unavailable", "what was taken back is never signed again");
});

await test("a roster change before the recording has the approvals collected anew", async () => {
  const own = await world.found({ members: ["ivan", "judy", "karl"], name: "Neu AG" });
  const { address } = own;
  const id = await asked(own);
  await world.voteAs("ivan", id);
  const stale = await world.findVote("judy", id);
  await world.govern(
    "ivan",
    { operation: "changeCharter", members: world.rosterOf(["judy", "karl", "lena"]) },
    { business: address, voters: ["ivan", "judy"] },
  );
  await world.reachEpoch(address, 1);
  const late = await world.voteAs("judy", id, { item: stale });
  assert.deepEqual(reasonOf(late), [409, "ballot_changed"]);
  assert.equal((await world.voteAs("judy", id)).body["status"], "open", "no vote of before counts");
  assert.equal((await world.voteAs("lena", id)).body["status"], "approved");
  await world.reach(id, "signed");
  assert.ok(await accepts(address, "For Neu AG"));
});

await test("approvals that the chain no longer takes are collected anew, and the merchant hears nothing of it", async () => {
  const own = await world.found({ members: ["mona", "nina", "olaf"], name: "Spät AG" });
  const { address } = own;
  const id = await asked(own);
  const items = [await world.findVote("mona", id), await world.findVote("nina", id)] as const;
  await world.voteAs("mona", id, { item: items[0] });
  const lastVote = async () => world.voteAs("nina", id, { item: items[1] });
  await govern(own, governanceActs.changeCharter(charterOf(["mona", "nina"])), lastVote);
  await world.reachEpoch(address, 1);
  await world.until("the members are asked again", async () => {
    const item = (await world.inboxOf("mona")).find((each) => each.id === id);
    return item?.["epoch"] === 1 ? true : null;
  });
  assert.equal((await world.eventsOf(id)).length, 1);
  const kept = sql`select from signature_request where id = ${id} and failed_block > 0`;
  assert.equal((await ctx.db.query(kept)).length, 1);
  for (const name of ["mona", "nina"]) await world.voteAs(name, id);
  await world.reach(id, "signed");
  assert.equal((await world.eventsOf(id)).length, 2);
});

await test("a recording that cannot be looked at keeps none behind it waiting", async () => {
  const id = await asked(await world.found({ members: ["uma", "vera"], name: "Hinten AG" }));
  // No contract is there, so the chain cannot be asked about it.
  const nowhere: Address = `0x${"00".repeat(19)}01`;
  await ctx.db.query(sql`
    insert into business select (jsonb_populate_record(b,
      jsonb_build_object('address', ${nowhere}::text, 'invitation_id', '0', 'status', 'lapsed'))).*
    from business b where address = ${business.address}`);
  await ctx.db.query(sql`
    insert into signature_request select (jsonb_populate_record(r,
      jsonb_build_object('id', '00' || n, 'business', ${nowhere}::text, 'has_failed_recording', true))).*
    from signature_request r, generate_series(10, 40) as n where id = ${id}`);
  await ctx.db.query(
    sql`update signature_request set has_failed_recording = true where id = ${id}`,
  );
  await world.until("it is looked at", async () => {
    const rows = await ctx.db.query(
      sql`select from signature_request where id = ${id} and not has_failed_recording`,
    );
    return rows.length > 0 ? true : null;
  });
  await ctx.db.query(sql`delete from signature_request where business = ${nowhere}`);
  await ctx.db.query(sql`delete from business where address = ${nowhere}`);
});

await test("approvals that come to the chain after the business has moved end its request", async () => {
  const own = await world.found({ members: ["quentin", "rosa"], name: "Fort AG" });
  const next = await world.found({ members: ["quentin", "rosa"], name: "Da AG" });
  const id = await asked(own);
  const item = await world.findVote("rosa", id);
  await world.voteAs("quentin", id);
  const lastVote = async () => world.voteAs("rosa", id, { item });
  await govern(own, governanceActs.moveTo(next.address), lastVote);
  const ended = await world.reach(id, "failed");
  assert.equal(ended["reason"], "business_wallet_rotated");
  assert.equal(await accepts(own.address, "For Fort AG"), false);
});

/** The members call the contract directly, so the service does not know of it when the last vote comes. */
async function govern(own: TestBusiness, act: GovernanceAct, lastVote: () => Promise<Answer>) {
  const { chainId } = ctx.chain;
  const validUntil = ctx.clock.now() + 3600;
  const digest = approvalDigest({
    chainId,
    business: own.address,
    category: businessCategory.governance,
    hash: governanceHash({ ...act, nonce: 0 }),
    epoch: 0,
    validUntil,
  });
  // The contract takes exactly as many approvals as the rule asks for.
  const needed = own.members.length <= 2 ? own.members : own.members.slice(0, 2);
  const approvals = needed
    .map((name) => world.person(name))
    .toSorted((one, other) => (one.address < other.address ? -1 : 1))
    .map(({ address, privateKey }) => ({
      member: address,
      signature: signDigest(digest, privateKey),
    }));
  const signatures = joinApprovals(approvals);
  const calls = await loadWalletCalls();
  const [operation = ""] = act.operation.split("(");
  const data = calls.govern(operation as "changeCharter" | "moveTo", act.arguments, {
    validUntil,
    signatures,
  });
  const raw = await privateKeyToAccount(generatePrivateKey()).signTransaction({
    type: "eip1559",
    chainId,
    nonce: 0,
    to: own.address,
    data,
    gas: 3_000_000n,
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
  });
  await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from business where address = ${own.address} for share`);
    await ctx.chain.node.submit([raw]);
    assert.equal((await lastVote()).body["status"], "approved");
  });
}

/** A charter of these members, all of whom vote. */
function charterOf(names: readonly string[]): Hex {
  const members = names.map((name) => ({ address: world.person(name).address, isVoting: true }));
  const rules = {
    signature_requests: "MAJORITY",
    data_requests: "MAJORITY",
    governance: "MAJORITY",
  } as const;
  return encodeCharter({ rules, members });
}

await test("a refusal is announced 5 to 30 seconds after the vote that decides it, and nothing shows before", async (t) => {
  // The longest possible delay leaves time for the run of the test itself.
  t.mock.method(ctx.random, "below", (bound: number) => bound - 1);
  const id = await world.begin({ message: "Refused terms" });
  await world.voteAs("alice", id);
  await world.voteAs("bob", id, { vote: "reject" });
  const decided = await world.voteAs("carol", id, { vote: "reject" });
  assert.equal(decided.body["status"], "refused");
  const decidedAt = ctx.clock.now();
  await world.advance(20);
  const { body } = await world.call("GET", `${signaturesPath}/${id}`);
  assert.equal(body["status"], "pending_approval");
  assert.equal((await world.eventsOf(id)).length, 1);
  await world.advance(11);
  const ended = await world.reach(id, "refused");
  assert.equal(ended["reason"], "declined");
  const [, event] = await world.eventsOf(id);
  assert.equal(event?.event, "kyb.signature_request.refused");
  assert.equal(event.data["reason"], "declined");
  assert.ok(event.timestamp >= decidedAt + 5);
  assert.deepEqual(reasonOf(await signatureOf(id)), [404, "not_signed"]);
  assert.equal(await accepts(business.address, "Refused terms"), false);
});

await test("a request that nobody decides in its window expires, however many had voted", async () => {
  const id = await world.begin({ message: "Late terms", expiresInSeconds: 300 });
  await world.voteAs("alice", id);
  const item = await world.findVote("bob", id);
  await world.advance(301);
  const late = await world.voteAs("bob", id, { item });
  assert.deepEqual(reasonOf(late), [409, "ballot_over"]);
  const ended = await world.reach(id, "expired");
  assert.equal(ended["reason"], "expired");
  const [, event] = await world.eventsOf(id);
  assert.deepEqual(
    [event?.event, event?.data["reason"]],
    ["kyb.signature_request.expired", "expired"],
  );
});

await test("a cancelled request takes no vote, and cannot be cancelled again", async () => {
  const id = await world.begin({ message: "Cancelled terms" });
  const item = await world.findVote("alice", id);
  const path = `${signaturesPath}/${id}/cancel`;
  const cancelled = await world.call("POST", path);
  assert.deepEqual([cancelled.status, cancelled.body["status"]], [200, "cancelled"]);
  assert.ok(!("reason" in cancelled.body));
  const late = await world.voteAs("alice", id, { item });
  assert.deepEqual(reasonOf(late), [409, "ballot_over"]);
  assert.deepEqual(reasonOf(await world.call("POST", path)), [409, "request_not_open"]);
  const [, event] = await world.eventsOf(id);
  assert.equal(event?.event, "kyb.signature_request.cancelled");
});

await test("a request fails when its business is suspended, loses its record, or moves, and says which", async () => {
  const suspended = await world.found({ members: ["paul"], name: "Gesperrt AG" });
  const unverified = await world.found({ members: ["paul"], name: "Fraglich AG" });
  const moved = await world.found({ members: ["paul"], name: "Alt AG" });
  const next = await world.found({ members: ["paul"], name: "Neu Zwei AG" });
  const ids: string[] = [];
  for (const each of [suspended, unverified, moved]) ids.push(await asked(each));
  await suspendBusiness(ctx, suspended.address, "test");
  await setBusinessVerified(ctx, { address: unverified.address, isVerified: false }, "test");
  await world.govern(
    "paul",
    { operation: "moveTo", successor: next.address },
    { business: moved.address },
  );
  const reasons = ["business_not_verified", "business_not_verified", "business_wallet_rotated"];
  for (const [index, id] of ids.entries()) {
    const ended = await world.reach(id, "failed");
    assert.equal(ended["reason"], reasons[index]);
    const [, event] = await world.eventsOf(id);
    assert.deepEqual(
      [event?.event, event?.data["reason"]],
      ["kyb.signature_request.failed", reasons[index]],
    );
  }
  for (const { address } of [suspended, unverified, moved])
    assert.deepEqual(reasonOf(await world.askSignature({ businessWalletAddress: address })), [
      422,
      "business_not_verified",
    ]);
});

await test("an approval of another category is no vote on a signature, and the chain records none", async () => {
  const message = "Crossed terms";
  const id = await world.begin({ message });
  const item = await world.findVote("alice", id);
  for (const category of [2, 3, 4] as const) {
    const crossed = await world.voteAs("alice", id, { item, changed: { category } });
    assert.deepEqual(reasonOf(crossed), [422, "signature_wrong"]);
  }
  for (const changed of [{ chainId: 1 }, { epoch: 7 }, { validUntil: 1 }, { business: elsewhere }])
    assert.deepEqual(reasonOf(await world.voteAs("alice", id, { item, changed })), [
      422,
      "signature_wrong",
    ]);
  const { address } = business;
  const { epoch, validUntil } = item as unknown as { epoch: number; validUntil: number };
  const hash = hashMessage(message);
  const record = async (category: 1 | 4): Promise<unknown> => {
    const approval = { chainId: ctx.chain.chainId, business: address, category, hash, epoch };
    const digest = approvalDigest({ ...approval, validUntil });
    const approvals = ["alice", "bob"]
      .map((name) => world.person(name))
      .toSorted((one, other) => (one.address < other.address ? -1 : 1))
      .map((member) => signDigest(digest, member.privateKey).slice(2));
    return reader.simulateContract({
      address,
      abi: parseAbi(["function record(bytes32 hash, uint48 validUntil, bytes approvals)"]),
      functionName: "record",
      args: [hash, validUntil, `0x${approvals.join("")}`],
    });
  };
  await assert.rejects(record(4), "approvals of a login");
  await record(1);
  await world.call("POST", `${signaturesPath}/${id}/cancel`);
});

await test("an approval of a signature logs nobody in", async () => {
  const page = await openBusinessPage(world);
  const { response } = await actAs(world, page, { name: "alice", approval: { category: 1 } });
  assert.equal(response.status, 422, await response.text());
});

await test("what was signed for one business is nothing for another with the same members", async () => {
  const twin = await world.found({ name: "Zwilling AG" });
  const id = await asked(twin);
  for (const name of ["alice", "bob"]) await world.voteAs(name, id);
  await world.reach(id, "signed");
  assert.ok(await accepts(twin.address, "For Zwilling AG"));
  assert.equal(await accepts(business.address, "For Zwilling AG"), false);
});

await test("documents that nobody signs are refused before anybody is asked", async () => {
  const permit: TypedDataDocument = {
    ...typedData,
    types: { Permit: [{ name: "spender", type: "address" }] },
    primaryType: "Permit",
    message: { spender: elsewhere },
  };
  const other = { ...typedData, domain: { ...typedData.domain, chainId: 1 } };
  for (const [expected, changed] of [
    ["document_refused", { ...typedRequest, typedData: permit }],
    ["document_refused", { ...typedRequest, typedData: other }],
    ["document_refused", { message: "evil.example wants you to sign in with your x account:" }],
    ["malformed_request", { message: "a\u202eb" }],
    ["malformed_request", { message: "" }],
    ["malformed_request", { message: undefined }],
    ["malformed_request", typedData],
  ] as const) {
    const answer = await world.askSignature(changed);
    assert.deepEqual(reasonOf(answer), [expected === "malformed_request" ? 400 : 422, expected]);
    if (expected === "document_refused")
      assert.match(answer.body.error?.message ?? "", /^document_refused: /);
  }
  const own = "localhost wants you to sign in with your Ethereum account:\n0x00";
  const id = await world.begin({ message: own });
  await world.call("POST", `${signaturesPath}/${id}/cancel`);
});

// How businesses come to be, over the public routes and on the embedded chain.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, decodeCharter, type Hex } from "@svc/protocol";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { readerOf } from "../chain-reader.ts";
import { findBusiness } from "../../service/src/kyb/index.ts";
import { foundingFinalHandlers } from "../../service/src/kyb/business/founding.ts";
import { findFounding } from "../../service/src/kyb/business/founding-store.ts";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { loadWalletCalls } from "../../service/src/kyb/business/wallet-calls.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { actsOn } from "../audited-acts.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { untilBlocked } from "../lock-waits.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

const codeAt = async (address: Address): Promise<Hex | undefined> =>
  readerOf(world.ctx.chain).getCode({ address });

const statusOf = async (address: Address): Promise<string | undefined> =>
  (await findBusiness(world.ctx.db, address))?.status;

const reach = async (address: Address, status: string): Promise<void> =>
  void (await world.until(`${address} is ${status}`, async () =>
    (await statusOf(address)) === status ? true : null,
  ));

/** Sends a founding with these changes. @returns the status and the reason of the refusal */
const refusalOf = async (
  changed: Record<string, unknown>,
): Promise<[number, string | undefined]> => {
  const { status, body } = await world.askFounding({ changed });
  return [status, body.error?.reason];
};

test("a business is active once everybody signed, and its wallet is deployed where it was said to be", async () => {
  const { ctx, business } = world;
  const founding = await findFounding(ctx.db, business.address);
  assert.ok(founding !== null);
  const { charter, salt } = founding;
  const said = await readerOf(ctx.chain).readContract({
    address: ctx.chain.contracts.factories.live,
    abi: [
      {
        type: "function",
        name: "walletOf",
        stateMutability: "view",
        inputs: [{ type: "bytes" }, { type: "bytes32" }],
        outputs: [{ type: "address" }],
      },
    ],
    functionName: "walletOf",
    args: [charter, salt],
  });
  assert.equal(said.toLowerCase(), business.address);
  const calls = await loadWalletCalls();
  const state = await calls.read(ctx, business.address);
  assert.equal(state.charter, charter);
  assert.deepEqual([state.epoch, state.nonce, state.removal, state.successor], [0, 0, null, null]);
  const seen = await world.businessOf("bob");
  assert.deepEqual([seen["status"], seen["epoch"]], ["active", 0]);
  assert.deepEqual(seen["rules"], decodeCharter(charter)?.rules);
});

test("nothing is deployed before the last signature", async () => {
  const asked = await world.askFounding();
  assert.equal(asked.status, 201);
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  assert.equal((await world.voteAs("bob", id)).body["status"], "open");
  assert.ok((await world.inboxOf("bob")).every((each) => each.id !== id));
  assert.equal(await statusOf(address), "inviting");
  assert.equal(await codeAt(address), undefined);
  const lookup = await world.call("GET", `/api/v1/kyb/status/${address}`);
  assert.equal(lookup.body.error?.reason, "business_not_found");
  const item = await world.findVote("carol", id);
  assert.equal((await world.voteAs("carol", id, { item })).body["status"], "approved");
  await reach(address, "active");
  const again = await world.voteAs("carol", id, { item });
  assert.deepEqual([again.status, again.body["status"]], [200, "approved"]);
});

test("the last signature that comes twice at once counts, and is told so twice", async () => {
  const asked = await world.askFounding();
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  await world.voteAs("bob", id);
  const item = await world.findVote("carol", id);
  const { ctx } = world;
  const answers = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from business where address = ${address} for update`);
    const voting = [1, 2].map(async () => world.voteAs("carol", id, { item }));
    await untilBlocked(ctx.db, tx, 2);
    return { voting };
  });
  for (const { status, body } of await Promise.all(answers.voting))
    assert.deepEqual([status, body["status"]], [200, "approved"]);
  await reach(address, "active");
});

test("the founder alone is enough where there is nobody else", async () => {
  const asked = await world.askFounding({ members: ["solo"] });
  assert.deepEqual([asked.status, asked.body["status"]], [201, "deploying"]);
  await reach(asked.body["address"] as Address, "active");
});

test("one refusal ends the founding", async () => {
  const asked = await world.askFounding();
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  const item = await world.findVote("carol", id);
  const refused = await world.voteAs("bob", id, { vote: "reject" });
  assert.equal(refused.body["status"], "refused");
  const again = await world.voteAs("bob", id, { item, vote: "reject" });
  assert.deepEqual([again.status, again.body["status"]], [200, "refused"]);
  const founder = await world.voteAs("alice", id, { item, vote: "reject" });
  assert.deepEqual([founder.status, founder.body.error?.reason], [409, "ballot_over"]);
  const late = await world.voteAs("carol", id, { item });
  assert.deepEqual([late.status, late.body.error?.reason], [409, "ballot_over"]);
  assert.equal(await statusOf(address), "lapsed");
  assert.equal(await codeAt(address), undefined);
  const declined = `${world.person("bob").address} business.decline`;
  assert.equal((await actsOn(world.ctx.db, address)).at(-1), declined);
});

test("somebody else's signature, or one of another invitation, does not count", async () => {
  const asked = await world.askFounding();
  const { invitationId: id } = asked.body as { invitationId: string };
  const other = await world.askFounding();
  const item = await world.findVote("bob", id);
  const forged = await world.voteAs("bob", id, { item, signer: world.person("mallory") });
  assert.equal(forged.body.error?.reason, "signature_wrong");
  const foreign = await world.findVote("bob", String(other.body["invitationId"]));
  const swapped = await world.voteAs("bob", id, { item: { ...foreign, id } });
  assert.equal(swapped.body.error?.reason, "signature_wrong");
  const stranger = await world.voteAs("mallory", id, {
    item,
    sent: { epoch: 0, validUntil: 0 },
  });
  assert.deepEqual([stranger.status, stranger.body.error?.reason], [404, "ballot_not_found"]);
});

test("a refusal counts by the invited member's own signature, and from nobody who has signed", async () => {
  const asked = await world.askFounding();
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  const item = await world.findVote("bob", id);
  const signer = world.person("mallory");
  const forged = await world.voteAs("bob", id, { item, vote: "reject", signer });
  assert.deepEqual([forged.status, forged.body.error?.reason], [422, "signature_wrong"]);
  const founder = await world.voteAs("alice", id, { item, vote: "reject" });
  assert.deepEqual([founder.status, founder.body.error?.reason], [409, "already_voted"]);
  assert.equal(await statusOf(address), "inviting");
});

test("whoever calls the factory first, it is the same wallet", async () => {
  const { ctx } = world;
  const asked = await world.askFounding();
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  const founding = await findFounding(ctx.db, address);
  assert.ok(founding !== null);
  const calls = await loadWalletCalls();
  const account = privateKeyToAccount(generatePrivateKey());
  const raw = await account.signTransaction({
    type: "eip1559",
    chainId: ctx.chain.chainId,
    nonce: 0,
    to: ctx.chain.contracts.factories.live,
    data: calls.create(founding.charter, founding.salt),
    gas: 3_000_000n,
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
  });
  await ctx.chain.node.submit([raw]);
  await world.until("the squatter has deployed it", async () => (await codeAt(address)) ?? null);
  assert.equal(await statusOf(address), "inviting");
  for (const name of ["bob", "carol"]) await world.voteAs(name, id);
  await reach(address, "active");
});

test("the same founding again changes nothing, and nobody else takes its place", async () => {
  const given = { changed: { salt: `0x${"5a".repeat(32)}` } };
  const asked = await world.askFounding(given);
  const again = await world.askFounding(given);
  assert.deepEqual([asked.status, again.status], [201, 200]);
  assert.deepEqual(again.body, asked.body);
  const other = await world.askFounding({ ...given, members: ["bob", "alice", "carol"] });
  assert.deepEqual([other.status, other.body.error?.reason], [409, "business_exists"]);
});

test("a founding whose wallet the chain refuses has ended, and nobody founds it again", async () => {
  const given = { members: ["solo"], changed: { salt: `0x${"5b".repeat(32)}` } };
  const { db } = world.ctx;
  const ctx = world.ctx as unknown as KybContext;
  const address = await db.transaction(async (tx) => {
    // While this lock on the signer is held, the service sends no transaction.
    await tx.query(sql`select from chain_signer for update`);
    const asked = await world.askFounding(given);
    assert.deepEqual([asked.status, asked.body["status"]], [201, "deploying"]);
    const subjectId = asked.body["address"] as Address;
    const refused = {
      id: "1",
      kind: "business.create",
      subjectId,
      hash: `0x${"77".repeat(32)}`,
      signer: `0x${"66".repeat(20)}`,
      status: "reverted",
      blockNumber: 2,
      blockTime: ctx.clock.now(),
    } as const;
    await db.transaction(async (other) =>
      foundingFinalHandlers(ctx)["business.create"]?.(other, [refused]),
    );
    return subjectId;
  });
  const again = await world.askFounding(given);
  assert.deepEqual([again.status, again.body.error?.reason], [409, "business_exists"]);
  await world.until("somebody else has made it", async () => (await codeAt(address)) ?? null);
  await world.found({ members: ["solo"] });
  assert.equal(await statusOf(address), "lapsed");
});

test("live and sandbox are two wallets, and a key of the one does not see the other", async () => {
  const sandbox = await world.found({ members: ["solo"], environment: "sandbox" });
  const lookup = await world.call("GET", `/api/v1/kyb/status/${sandbox.address}`);
  assert.deepEqual([lookup.status, lookup.body.error?.reason], [404, "business_not_found"]);
});

test("a founding without what it takes is refused by name", async () => {
  const member = (name: string, more: object = {}): object => ({
    address: world.person(name).address,
    name,
    votingRights: true,
    ...more,
  });
  const alice = member("alice");
  const many = Array.from({ length: 51 }, (_, at) => member(`member ${at}`));
  const invalid: readonly Record<string, unknown>[] = [
    { members: [] },
    { members: many },
    { members: [alice, alice] },
    { members: [member("alice", { votingRights: false })] },
    { members: [member("alice", { address: `0x${"00".repeat(20)}` })] },
    { members: [member("alice", { address: `0x${"00".repeat(18)}0100` })] },
    { members: [member("alice", { name: "Ali\u202ece" })] },
    { members: [member("alice", { name: "Ali\nce" })] },
    { members: [member("alice", { role: "ceo" })] },
    { name: " " },
    { name: "\u200b" },
    { name: "\u0007" },
    { name: "x".repeat(101) },
    { salt: "0x00" },
    { deadline: world.ctx.clock.now() + 30 },
    { deadline: world.ctx.clock.now() + 31 * 86_400 },
    { rules: { governance: "DICTATOR" } },
    { rules: { payments: "MAJORITY" } },
    { environment: "test" },
    { extra: true },
  ];
  for (const changed of invalid)
    assert.deepEqual(await refusalOf(changed), [400, "invalid_request"], JSON.stringify(changed));
  assert.deepEqual(await refusalOf({ members: [member("bob")] }), [403, "not_a_member"]);
  assert.deepEqual(await refusalOf({ members: [alice] }), [422, "signature_wrong"]);
  const keyless = member("Us", { address: world.business.address });
  assert.deepEqual(await refusalOf({ members: [alice, keyless] }), [400, "invalid_request"]);
  const members = Array.from({ length: 50 }, (_, at) => `member ${at}`);
  assert.equal((await world.askFounding({ members, name: "x".repeat(100) })).status, 201);
  for (const seconds of [90, 30 * 86_400 - 30]) {
    const { status } = await world.askFounding({
      changed: { deadline: world.ctx.clock.now() + seconds },
    });
    assert.equal(status, 201, `${seconds}`);
  }
});

test("a founder ends its founding until everybody has signed, and nobody is asked any more", async () => {
  const abandon = async (name: string, business: string) => {
    const path = `/w/businesses/${business}/abandon`;
    const { status, body } = await world.walletCall(name, "POST", path, { body: {} });
    return [status, body["status"] ?? body.error?.reason];
  };
  const asked = await world.askFounding();
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  await world.voteAs("bob", id);
  const item = await world.findVote("carol", id);
  for (const name of ["bob", "mallory"])
    assert.deepEqual(await abandon(name, address), [404, "business_not_found"], name);
  assert.deepEqual(await abandon("alice", "0x12"), [404, "business_not_found"]);
  for (let times = 1; times <= 2; times += 1)
    assert.deepEqual(await abandon("alice", address), [200, "lapsed"]);
  const abandoned = `${world.person("alice").address} business.abandon`;
  assert.equal((await actsOn(world.ctx.db, address)).at(-1), abandoned);
  assert.ok((await world.inboxOf("carol")).every((each) => each.id !== id));
  await assert.rejects(world.businessOf("bob", address), /member of no business/);
  const late = await world.voteAs("carol", id, { item });
  assert.deepEqual([late.status, late.body.error?.reason], [409, "ballot_over"]);
  const done = await world.found({ members: ["alice", "bob"] });
  assert.deepEqual(await abandon("alice", done.address), [409, "ballot_over"]);
  assert.equal(await statusOf(done.address), "active");
});

test("an invitation that is not answered in time has ended", async () => {
  const asked = await world.askFounding();
  const { invitationId: id, address } = asked.body as { invitationId: string; address: Address };
  const item = await world.findVote("bob", id);
  await world.advance(3601);
  const late = await world.voteAs("bob", id, { item });
  assert.equal(late.body.error?.reason, "ballot_over");
  const inbox = await world.inboxOf("bob");
  assert.ok(inbox.every((each) => each.id !== id));
  await world.advance(60);
  await reach(address, "lapsed");
});

// Approvals that somebody else hands to the contract, before the service does or beside it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, encodeCharter, governanceActs, type Hex, type Hex32 } from "@svc/protocol";
import { findBusiness } from "../../service/src/kyb/index.ts";
import { announceMove } from "../../service/src/kyb/business/standing.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import {
  type GovernanceOperation,
  loadWalletCalls,
} from "../../service/src/kyb/business/wallet-calls.ts";
import { callAsStranger, firstActCall, recordCall } from "../kyb-stranger.ts";
import { type InboxItem, type KybWorld, openKybWorld, type TestBusiness } from "../kyb-world.ts";
import { untilBlockedAt } from "../lock-waits.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

/** The first proposes and approves. @returns also the call by which a stranger relays the approvals of both */
async function askFor(
  address: Address,
  request: Record<string, unknown>,
  [first, second]: readonly [string, string],
): Promise<{ id: string; item: InboxItem; data: Hex }> {
  const id = await world.govern(first, request, { business: address, voters: [first] });
  const item = await world.findVote(second, id);
  const act = {
    business: address,
    operation: request["operation"] as GovernanceOperation,
    signature: String(item["operation"]),
    arguments: item["arguments"] as Hex,
  };
  const validUntil = Number(item["validUntil"]);
  return { id, item, data: await firstActCall(world, act, { by: [first, second], validUntil }) };
}

/** Both approve, and a stranger relays their approvals before the service does. @returns the proposal's id */
async function decideAndRelay(
  { address }: TestBusiness,
  request: Record<string, unknown>,
  members: readonly [string, string],
): Promise<string> {
  const { id, item, data } = await askFor(address, request, members);
  await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`set local idle_in_transaction_session_timeout = 0`);
    // Keeps the service from following the chain until it knows that its own transaction came too late.
    await tx.query(sql`select from business where address = ${address} for share`);
    await callAsStranger(world, address, data);
    assert.equal((await world.voteAs(members[1], id, { item })).body["status"], "approved");
    // The service now schedules a look at the business, which this lock holds up.
    await untilBlockedAt(world.ctx.db, "update business set look_due_at = 0 where address = $1)");
  });
  return id;
}

test("a new member is called what the members approved also where a stranger relays their approvals first, and the change is done", async () => {
  const business = await world.found({ members: ["alma", "bert", "cora"] });
  const dirk = { address: world.person("dirk").address, name: "Dirk", votingRights: true };
  const members = [...world.rosterOf(["alma", "bert", "cora"]), dirk];
  const request = { operation: "changeCharter", members };
  const id = await decideAndRelay(business, request, ["alma", "bert"]);
  await world.reachEpoch(business.address, 1);
  const shown = (await world.businessOf("alma", business.address))["members"] as { name: string }[];
  assert.deepEqual(shown.map(({ name }) => name).toSorted(), ["Dirk", "alma", "bert", "cora"]);
  await world.reachProposal("alma", id, "executed");
});

test("a move and a removal that a stranger relays first are done", async () => {
  const business = await world.found({ members: ["emil", "fina", "gerd"] });
  const successor = await world.found({ members: ["emil"], name: "Muster Zwei AG" });
  const move = { operation: "moveTo", successor: successor.address };
  const id = await decideAndRelay(business, move, ["emil", "fina"]);
  await world.reachProposal("emil", id, "executed");
  const other = await world.found({ members: ["emil", "fina", "gerd"] });
  const removal = { operation: "startRemoval", member: world.person("gerd").address };
  const removing = await decideAndRelay(other, removal, ["emil", "fina"]);
  await world.reachProposal("emil", removing, "executed");
});

test("a business that the operator moved goes on where merchants were told, whatever is done with the wallet that it left", async () => {
  const { ctx } = world;
  const [left, next, other] = [
    await world.found({ members: ["kuno"] }),
    await world.found({ members: ["lisa"] }),
    await world.found({ members: ["kuno"] }),
  ];
  await announceMove(ctx, { address: left.address, successor: next.address }, "test");
  await world.advance(31 * 86_400);
  await world.until("the business has moved", async () =>
    (await findBusiness(ctx.db, left.address))?.status === "moved" ? true : null,
  );
  const { arguments: args, operation: signature } = governanceActs.moveTo(other.address);
  const act = { business: left.address, operation: "moveTo", signature, arguments: args } as const;
  const approvers = { by: ["kuno"], validUntil: ctx.clock.now() + 3600 };
  await callAsStranger(world, left.address, await firstActCall(world, act, approvers));
  const row = await world.until("the service has seen it", async () => {
    const found = await findBusiness(ctx.db, left.address);
    return found?.nonce === 1 ? found : null;
  });
  assert.equal(row.successor, next.address);
});

test("a signature that a stranger's call takes back is taken back, and nobody is asked again", async () => {
  const business = await world.found({ members: ["hans", "irma"] });
  const { address } = business;
  const hash: Hex32 = `0x${"7e".repeat(32)}`;
  const approvers = { by: ["hans", "irma"], validUntil: world.ctx.clock.now() + 3600 };
  await callAsStranger(
    world,
    address,
    await recordCall(world, { business: address, hash }, approvers),
  );
  const calls = await loadWalletCalls();
  await world.until("it is recorded", async () =>
    (await calls.isRecorded(world.ctx, address, hash)) ? true : null,
  );
  const id = await decideAndRelay(business, { operation: "withdraw", hash }, ["hans", "irma"]);
  await world.reachProposal("hans", id, "executed");
  assert.deepEqual(await world.inboxOf("irma"), []);
});

/** One approves, and a stranger relays the approvals of both. @returns the proposal's id */
async function relayBeforeVotes(
  { address }: TestBusiness,
  request: Record<string, unknown>,
  members: readonly [string, string],
): Promise<string> {
  const { id, data } = await askFor(address, request, members);
  await callAsStranger(world, address, data);
  return id;
}

test("an act that a stranger's call does while it is voted on is done, and nobody is asked any more", async () => {
  const names = ["jost", "kuno", "lena"] as const;
  const [jost, kuno, lena] = names;
  const successor = await world.found({ members: [jost], name: "Muster Drei AG" });
  const signed = await world.found({ members: names });
  const hash: Hex32 = `0x${"7d".repeat(32)}`;
  const approvers = { by: [jost, kuno], validUntil: world.ctx.clock.now() + 3600 };
  const recording = await recordCall(world, { business: signed.address, hash }, approvers);
  await callAsStranger(world, signed.address, recording);
  const calls = await loadWalletCalls();
  await world.until("it is recorded", async () =>
    (await calls.isRecorded(world.ctx, signed.address, hash)) ? true : null,
  );
  const acts = [
    [signed, { operation: "withdraw", hash }],
    [null, { operation: "changeCharter", members: world.rosterOf([jost, kuno]) }],
    [null, { operation: "moveTo", successor: successor.address }],
    [null, { operation: "startRemoval", member: world.person(lena).address }],
  ] as const;
  const relayed: string[] = [];
  for (const [known, request] of acts) {
    const business = known ?? (await world.found({ members: names }));
    relayed.push(await relayBeforeVotes(business, request, [jost, kuno]));
  }
  for (const id of relayed) await world.reachProposal(jost, id, "executed");
  assert.deepEqual(await world.inboxOf(kuno), []);
});

test("what somebody else has the contract do is found and followed", async () => {
  const { ctx } = world;
  const business = await world.found({ members: ["pat", "quinn", "ray"] });
  const { address } = business;
  const charter = encodeCharter({
    rules: { signature_requests: "UNANIMOUS", data_requests: "MAJORITY", governance: "MAJORITY" },
    members: ["pat", "quinn"].map((name) => ({
      address: world.person(name).address,
      isVoting: true,
    })),
  });
  const approvals = { by: ["pat", "quinn"], validUntil: ctx.clock.now() + 3600 };
  const { arguments: args } = governanceActs.changeCharter(charter);
  const act = { operation: "changeCharter", signature: "changeCharter(bytes)" } as const;
  const call = { business: address, ...act, arguments: args };
  await callAsStranger(world, address, await firstActCall(world, call, approvals));
  const row = await world.reachEpoch(business.address, 1);
  assert.equal(row.charter.rules.signature_requests, "UNANIMOUS");
  await assert.rejects(world.businessOf("ray", address), /member of no business/);
});

test("a removal that its member ends by a call of its own is no longer shown", async () => {
  const { address } = await world.found({ members: ["sina", "tilo", "urs"] });
  const removal = { operation: "startRemoval", member: world.person("urs").address };
  await world.govern("sina", removal, { business: address, voters: ["sina", "tilo"] });
  const open = async () =>
    (await world.businessOf("urs", address))["removal"] as { keepNonce: number } | null;
  const { keepNonce } = await world.until("the removal is shown", open);
  await world.until("nothing of before is still to be looked at", async () => {
    const found = await world.ctx.db.query(sql`select from business, business_watch
      where address = ${address} and look_due_at is null and block >= chain_block`);
    return found.length === 1 ? true : null;
  });
  const signature = world.keepSignature("urs", { business: address, nonce: keepNonce });
  await callAsStranger(world, address, (await loadWalletCalls()).keep(signature));
  await world.until("the removal has ended", async () => ((await open()) === null ? true : null));
});

test("a removal that its member only answered by a vote is finished by whoever asks the contract after 30 days", async () => {
  const { address } = await world.found({ members: ["vera", "wim", "xaver"] });
  const removal = { operation: "startRemoval", member: world.person("xaver").address };
  await world.govern("vera", removal, { business: address, voters: ["vera", "wim"] });
  const open = async () =>
    (await world.businessOf("xaver", address))["removal"] as { hasAnswered: boolean } | null;
  await world.until("the removal is shown", open);
  const change = { operation: "changeCharter", members: world.rosterOf(["vera", "wim"]) };
  const id = await world.govern("vera", change, { business: address, voters: [] });
  await world.voteAs("xaver", id, { vote: "reject" });
  assert.equal((await open())?.hasAnswered, true);
  await world.advance(31 * 86_400);
  await callAsStranger(world, address, (await loadWalletCalls()).finishRemoval());
  const row = await world.until("the member is gone", async () => {
    const found = await findBusiness(world.ctx.db, address);
    return found?.epoch === 1 ? found : null;
  });
  assert.equal(row.charter.members.length, 2);
});

// Removals that their members answered by votes alone, and what a removal leaves of open votes, over the public routes and
// on the embedded chain.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { findBusiness } from "../../service/src/kyb/index.ts";
import { finishRemovals } from "../../service/src/kyb/business/removal.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { loadWalletCalls } from "../../service/src/kyb/business/wallet-calls.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";

const day = 86_400;
let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("a member who votes and never signs to stay ends no removals for good: the others decide again, and it signs or goes", async () => {
  const business = await world.found({ members: ["otis", "petra", "rasmus"] });
  const { address } = business;
  const removalOf = (name: string): Record<string, unknown> => ({
    operation: "startRemoval",
    member: world.person(name).address,
  });
  const shown = async () =>
    (await world.businessOf("otis", address))["removal"] as Record<string, unknown> | null;
  const propose = async (name: string) => {
    const path = `/w/businesses/${address}/proposals`;
    const { status, body } = await world.walletCall("otis", "POST", path, {
      body: removalOf(name),
    });
    return [status, body.error?.message, body.error?.details?.["protectedUntil"]];
  };
  const rejects = async () => {
    const request = { operation: "changeCharter", members: world.rosterOf(["otis", "petra"]) };
    const id = await world.govern("otis", request, { business: address, voters: [] });
    const { body } = await world.voteAs("rasmus", id, { vote: "reject" });
    assert.equal(body["removalOpen"], true);
  };
  const options = { business: address, voters: ["otis", "petra"] };
  await world.govern("otis", removalOf("rasmus"), options);
  const { endsAt } = await world.until("the removal is shown", shown);
  const notices = async () =>
    world.ctx.db.query(
      sql`select distinct subject from push_notice where subject like ${`removal:${address}:%`}`,
    );
  const told = await notices();
  assert.equal(told.length, 1);
  const underWay = [422, "removal_refused: one removal at a time", undefined];
  assert.deepEqual(await propose("rasmus"), underWay);
  await rejects();
  const until = world.ctx.clock.now() + 90 * day;
  const lately = "removal_refused: the member answered less than 90 days ago";
  await world.advance(45 * day);
  // The ninety days run from the first answer; later ones do not start them again.
  await rejects();
  await world.advance(44 * day);
  assert.deepEqual(await propose("petra"), underWay);
  const [status, message, protectedUntil] = await propose("rasmus");
  assert.deepEqual([status, message], [422, lately]);
  assert.ok(Math.abs(Number(protectedUntil) - until) < day);
  await world.advance(day + 60);
  assert.deepEqual(await propose("petra"), underWay);
  const proposeAgain = async (name: string) =>
    world.govern(name, removalOf("rasmus"), { business: address, voters: [name] });
  const [again, twice] = [await proposeAgain("otis"), await proposeAgain("petra")];
  assert.equal((await shown())?.["endsAt"], endsAt);
  assert.equal((await world.voteAs("petra", again)).body["status"], "approved");
  await world.reachProposal("otis", again, "executed");
  const toldAgain = await notices();
  assert.equal(toldAgain.length, 1);
  assert.notDeepEqual(toldAgain, told);
  const renewed = await shown();
  assert.ok(Number(renewed?.["endsAt"]) > world.ctx.clock.now() + 30 * day - 60);
  await world.voteAs("otis", twice);
  await world.reachProposal("otis", twice, "failed");
  assert.equal((await shown())?.["endsAt"], renewed?.["endsAt"], "begun again once");
  await rejects();
  assert.equal((await shown())?.["hasAnswered"], false);
  assert.deepEqual(await propose("rasmus"), underWay);
  await world.advance(29 * day);
  await finishRemovals(world.ctx);
  assert.equal((await findBusiness(world.ctx.db, address))?.epoch, 0);
  await world.advance(2 * day);
  const row = await world.reachEpoch(address, 1);
  assert.equal(row.charter.members.length, 2);
});

test("a member whose removal was decided again, also across a change of the roster, still ends it with a signature", async () => {
  const business = await world.found({ members: ["saskia", "timo", "undine"] });
  const { address } = business;
  const removal = { operation: "startRemoval", member: world.person("undine").address };
  const options = { business: address, voters: ["saskia", "timo"] };
  await world.govern("saskia", removal, options);
  const open = async () =>
    (await world.businessOf("undine", address))["removal"] as {
      keepNonce: number;
      hasAnswered: boolean;
    } | null;
  const { keepNonce } = await world.until("the removal is shown", open);
  const change = { operation: "changeCharter", members: world.rosterOf(["saskia", "timo"]) };
  const id = await world.govern("saskia", change, { business: address, voters: [] });
  await world.voteAs("undine", id, { vote: "reject" });
  await world.advance(91 * day);
  const again = await world.govern("saskia", removal, { ...options, voters: ["saskia"] });
  const next = {
    operation: "changeCharter",
    members: world.rosterOf(["saskia", "timo", "undine", "uwe"]),
  };
  await world.govern("saskia", next, options);
  await world.reachEpoch(address, 1);
  for (const name of ["saskia", "timo"]) await world.voteAs(name, again);
  await world.reachProposal("saskia", again, "executed");
  assert.equal((await open())?.hasAnswered, false);
  const signature = world.keepSignature("undine", { business: address, nonce: keepNonce });
  const path = `/w/businesses/${address}/keep`;
  const keep = async () =>
    (await world.walletCall("undine", "POST", path, { body: { signature } })).body;
  const { db } = world.ctx;
  await db.query(sql`update business_member set has_voted = false where business = ${address}`);
  await db.transaction(async (tx) => {
    // While this lock on the signer is held, the service sends no transaction.
    await tx.query(sql`select from chain_signer for update`);
    assert.deepEqual(await keep(), { ended: "removal" });
    assert.equal((await open())?.hasAnswered, true, "before the chain has it");
    // As if the wallet had sent another signature before, and lost the answer.
    await db.query(
      sql`update chain_transaction set data = data || '\\x00' where kind = 'business.keep'`,
    );
    assert.deepEqual(await keep(), { ended: "removal" });
  });
  const known = sql`select from business_member where business = ${address} and has_voted`;
  assert.equal((await db.query(known)).length, 1, "who signs to stay has agreed to be a member");
  await world.until("the removal has ended", async () => ((await open()) === null ? true : null));
  assert.equal((await (await loadWalletCalls()).read(world.ctx, address)).removal, null);
});

test("approvals from before a removal do not count after it: their act has a new number, and all approve anew", async () => {
  const { address } = await world.found({ members: ["vilma", "wim", "xenia"] });
  const change = { operation: "changeCharter", members: world.rosterOf(["vilma", "wim"]) };
  const id = await world.govern("vilma", change, { business: address });
  const stricter = {
    operation: "changeCharter",
    members: world.rosterOf(["vilma", "wim", "xenia"]),
    rules: { governance: "UNANIMOUS" },
  };
  const strict = await world.govern("wim", stricter, { business: address });
  const removal = { operation: "startRemoval", member: world.person("xenia").address };
  const removing = await world.govern("vilma", removal, { business: address });
  assert.ok((await world.inboxOf("xenia")).every((each) => each.id !== removing));
  const shown = await world.findVote("wim", id);
  await world.voteAs("wim", removing);
  const item = await world.until("the vote is collected anew", async () => {
    const found = await world.findVote("wim", id);
    return found["nonce"] === 1 ? found : null;
  });
  const late = await world.voteAs("wim", id, { item: shown });
  assert.equal(late.status, 422);
  assert.match(late.body.error?.message ?? "", /another act .* first, .*; look at it again/);
  const open = await world.reachProposal("wim", strict, "open");
  assert.deepEqual([open["needed"], open["approvals"]], [3, 0], "by the stricter rule still");
  assert.equal((await world.voteAs("wim", id, { item })).body["status"], "open");
  assert.equal((await world.voteAs("vilma", id)).body["status"], "approved");
  await world.reachProposal("vilma", id, "executed");
});

test("nobody begins its own removal, and a removal that nobody is left to decide has failed", async () => {
  const { address } = await world.found({ members: ["yoko", "zane"] });
  const path = `/w/businesses/${address}/proposals`;
  const own = { operation: "startRemoval", member: world.person("yoko").address };
  const refused = await world.walletCall("yoko", "POST", path, { body: own });
  assert.deepEqual([refused.status, refused.body.error?.reason], [422, "removal_refused"]);
  const strange = { ...own, member: world.person("xaver").address };
  const unknown = await world.walletCall("yoko", "POST", path, { body: strange });
  assert.deepEqual(
    [unknown.status, unknown.body.error?.message],
    [422, "removal_refused: no member"],
  );
  const proposed = await world.walletCall("zane", "POST", path, { body: own });
  assert.equal(proposed.status, 201);
  const [first, second] = world.rosterOf(["yoko", "zane"]);
  const members = [first, { ...second, votingRights: false }];
  const change = { operation: "changeCharter", members };
  await world.govern("yoko", change, { business: address, voters: ["yoko", "zane"] });
  const id = String(proposed.body["proposalId"]);
  await world.reachProposal("zane", id, "failed");
  const last = { ...own, member: world.person("zane").address };
  const alone = await world.walletCall("yoko", "POST", path, { body: last });
  const nobody = "removal_refused: nobody else has a vote";
  assert.deepEqual([alone.status, alone.body.error?.message], [422, nobody]);
});

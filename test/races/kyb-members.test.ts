// Members who decide about their own business, log in for it and ask for more, on two processes at the same instant: one
// transition, none by whoever is no longer a member, and no more open at once than is allowed.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { type Address, encodeCharter } from "@svc/protocol";
import { cancelBallot } from "../../service/src/kyb/index.ts";
import { lockBusiness } from "../../service/src/kyb/business/business-store.ts";
import { setVotingRights } from "../../service/src/kyb/business/roster-store.ts";
import {
  deleteOpenLogin,
  holdSeat,
} from "../../service/src/login/business/business-login-store.ts";
import { openDb, sql } from "../../service/src/platform/database/db.ts";
import { bufferOfHex } from "../../service/src/platform/hex.ts";
import { actAs, answerOf, logInFor, openBusinessPage, takeTokens } from "../business-login.ts";
import { until } from "../patience.ts";
import { type Answer, type KybWorld, openKybWorld } from "../kyb-world.ts";
import { untilBlocked, untilBlockedAt } from "../lock-waits.ts";
import { statusOf } from "../login-flow.ts";
import { claim, decline, post, scan } from "../raw-wallet.ts";
import { untilAvailable } from "../try-again.ts";
import type { ServerProcess } from "../world.ts";

let world: KybWorld;
let other: ServerProcess;
before(async () => {
  world = await openKybWorld();
  other = await world.startProcess();
});
after(async () => {
  await other[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

const processOf = (at: number): string => (at % 2 === 0 ? world.baseUrl : other.url);

const acting = { name: "alice" };

async function countOf(text: string, values: unknown[] = []): Promise<number> {
  const [row] = await world.ctx.db.query<{ n: number }>({
    name: "",
    text: `select count(*)::int as n from ${text}`,
    values,
  });
  return row?.n ?? -1;
}

test("the first approval of an acting member does not wait for another one of it that is under way", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const body = await answerOf(world, page, { claimed, acting });
  const of = { business: world.business.address, member: world.person("alice").address };
  const answered = await world.ctx.db.transaction(async (tx) => {
    await holdSeat(tx, { ...of, environment: "live" });
    return post(claimed.connection, body);
  });
  assert.deepEqual(await answered.json(), { status: "waiting" });
  await world.voteAs("bob", page.loginId);
  await takeTokens(world, page);
});

test("a member that loses its vote while its approval waits for the business does not act", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const body = await answerOf(world, page, { claimed, acting });
  const { address } = world.business;
  const voters = ["alice", "bob", "carol"].map((name) => world.person(name).address);
  const { answer } = await world.ctx.db.transaction(async (tx) => {
    await lockBusiness(tx, address);
    await setVotingRights(tx, address, voters.slice(1));
    const approval = post(claimed.connection, body);
    await untilBlocked(world.ctx.db, tx, [approval]);
    return { answer: approval };
  });
  const { error } = (await (await answer).json()) as { error: { reason: string } };
  assert.equal(error.reason, "not_a_member");
  await setVotingRights(world.ctx.db, address, voters);
});

/** A login that its wallet declines on one process while its approval on the other waits for the member's one place. */
async function declineDuringApproval(): Promise<{ loginId: string; failure: unknown }> {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const body = await answerOf(world, page, { claimed, acting });
  const connection = claimed.connection.replace(world.baseUrl, other.url);
  const { approved, declined } = await world.ctx.db.transaction(async (tx) => {
    const place = [world.person("alice").address, world.business.address];
    const text = "insert into business_login values ('held', $1, $2, '', 0)";
    await tx.query({ name: "", text, values: place });
    const approval = post(connection, body);
    await untilBlocked(world.ctx.db, tx, [approval]);
    const refusal = decline(claimed);
    await untilBlocked(world.ctx.db, tx, [approval, refusal]);
    return { approved: approval, declined: refusal };
  });
  assert.deepEqual([(await approved).status, (await declined).status], [200, 200]);
  const { failure } = await statusOf(world.baseUrl, page);
  return { loginId: page.loginId, failure };
}

test("a login that is declined while its acting member approves asks nobody, and the member begins another", async () => {
  const { loginId, failure } = await declineDuringApproval();
  assert.equal(failure, "declined");
  assert.ok((await world.inboxOf("bob")).every(({ id }) => id !== loginId));
  assert.equal(await countOf("business_login where login_id = $1", [loginId]), 0);
  assert.equal(await countOf("ballot where id = $1 and status = 'open'", [loginId]), 0);

  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const response = await post(claimed.connection, await answerOf(world, page, { claimed, acting }));
  assert.deepEqual(await response.json(), { status: "waiting" });
  await world.voteAs("bob", page.loginId);
  await takeTokens(world, page);
});

test("a vote on a login that ends while a member reads its inbox is not shown there without what it asks", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  await post(claimed.connection, await answerOf(world, page, { claimed, acting }));
  await world.findVote("bob", page.loginId);
  const { inbox } = await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`lock table business_login in access exclusive mode`);
    const reading = world.inboxOf("bob");
    await untilBlockedAt(world.ctx.db, "join login on");
    await cancelBallot(world.ctx, tx, page.loginId);
    await deleteOpenLogin(tx, page.loginId);
    return { inbox: reading };
  });
  assert.deepEqual(await inbox, []);
});

test("a vote on another process completes the page of this one", async () => {
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  const waiting = page.jar.fetch(
    `${world.baseUrl}/oauth2/login/${page.loginId}/status?after=gathering`,
  );
  await world.voteAs("carol", page.loginId, { baseUrl: other.url });
  assert.deepEqual(await (await waiting).json(), { kind: "approved" });
  await takeTokens(world, page);
});

/** Votes of all of them at once, on both processes. @returns how each was answered, in alphabetical order */
async function voteAtOnce(id: string, names: readonly string[]): Promise<string[]> {
  const items = await Promise.all(names.map(async (name) => world.findVote(name, id)));
  const answers = await Promise.all(
    items.map(async (item, at) =>
      world.voteAs(names[at] ?? "", id, { item, baseUrl: processOf(at) }),
    ),
  );
  return answers.map(({ body }) => body.error?.reason ?? String(body["status"])).toSorted();
}

/** How its transactions ended. The business may be known to have changed before they are marked final. */
const transactionsOf = async (proposalId: string): Promise<string[]> =>
  until("every transaction is final", async () => {
    const rows = await world.ctx.db.query<{ status: string; isFinal: boolean }>(sql`
      select status, finished_at is not null as "isFinal" from chain_transaction where subject_id like ${`${proposalId}%`}`);
    return rows.every(({ isFinal }) => isFinal) ? rows.map(({ status }) => status) : null;
  });

test("two members who approve a change at the same instant make one transaction of it", async () => {
  const { address } = world.business;
  for (let round = 0; round < 6; round += 1) {
    const rules = { data_requests: round % 2 === 0 ? "UNANIMOUS" : "MAJORITY" };
    const members = world.rosterOf(["alice", "bob", "carol"]);
    const request = { operation: "changeCharter", members, rules };
    const id = await world.govern("alice", request, { voters: [] });
    assert.deepEqual(await voteAtOnce(id, ["alice", "bob"]), ["approved", "open"]);
    await world.reachEpoch(address, round + 1);
    assert.deepEqual(await transactionsOf(id), ["succeeded"]);
  }
});

test("of three at the same instant, two decide and the third comes too late", async () => {
  const { address } = await world.found({ members: ["ann", "ben", "cleo"] });
  const request = { operation: "changeCharter", members: world.rosterOf(["ann", "ben"]) };
  const id = await world.govern("ann", request, { business: address, voters: [] });
  const answers = await voteAtOnce(id, ["ann", "ben", "cleo"]);
  assert.deepEqual(answers, ["approved", "ballot_over", "open"]);
  await world.reachEpoch(address, 1);
  assert.deepEqual(await transactionsOf(id), ["succeeded"]);
});

test("one member who approves on one process and refuses on the other has one vote", async () => {
  const { address } = await world.found({ members: ["dora", "emil", "finn"] });
  for (let round = 0; round < 4; round += 1) {
    const request = { operation: "changeCharter", members: world.rosterOf(["dora", "emil"]) };
    const id = await world.govern("dora", request, { business: address, voters: [] });
    const item = await world.findVote("emil", id);
    const answers = await Promise.all([
      world.voteAs("emil", id, { item, baseUrl: processOf(round) }),
      world.voteAs("emil", id, { item, baseUrl: processOf(round + 1), vote: "reject" }),
    ]);
    const reasons = answers.map(({ body }) => body.error?.reason ?? String(body["status"]));
    assert.deepEqual(reasons.toSorted(), ["already_voted", "open"]);
    const votes = await world.ctx.db.query(
      sql`select 1 as vote from ballot_vote where ballot_id = ${id}`,
    );
    assert.equal(votes.length, 1);
    const { body } = await world.voteAs("dora", id, { vote: "reject" });
    if (body["status"] === "open") await world.voteAs("finn", id, { vote: "reject" });
  }
});

test("members who approve a login at the same instant complete it once", async () => {
  const business = await world.found({ members: ["gus", "hana", "iris", "jon"] });
  for (let round = 0; round < 4; round += 1) {
    const page = await openBusinessPage(world);
    await actAs(world, page, { name: "gus", business });
    const answers = await voteAtOnce(page.loginId, ["hana", "iris", "jon"]);
    assert.deepEqual(answers, ["approved", "ballot_over", "open"]);
    assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
    await takeTokens(world, page);
    const families = await world.ctx.db.query<{ count: number }>(
      sql`select count(*)::int as count from token_family where user_address = ${world.person("gus").address}`,
    );
    assert.deepEqual(families, [{ count: round + 1 }]);
  }
});

/**
 * Founds one business per entry and proposes, all at one instant and on both processes, that each move to the business
 * at its entry's index.
 *
 * @returns how many are put to the vote
 */
async function moveAtOnce(successors: readonly number[]): Promise<number> {
  const businesses: Address[] = [];
  for (const _ of successors) {
    const { address } = await world.found({ members: ["wanda"] });
    businesses.push(address);
  }
  const answers = await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from business where address = any(${businesses}) for update`);
    const asked = successors.map(async (to, at) =>
      world.walletCall("wanda", "POST", `/w/businesses/${businesses[at] ?? ""}/proposals`, {
        body: { operation: "moveTo", successor: businesses[to] },
        baseUrl: processOf(at),
      }),
    );
    await untilBlocked(world.ctx.db, tx, successors.length);
    return { asked };
  });
  const all = await Promise.all(answers.asked);
  for (const { status } of all) assert.ok([200, 201, 400].includes(status), String(status));
  return all.filter(({ status }) => status !== 400).length;
}

test("of businesses that are asked at the same instant to move on to each other, in a pair or a ring, one stays", async () => {
  assert.equal(await moveAtOnce([1, 0]), 1);
  assert.equal(await moveAtOnce([1, 2, 0]), 2);
  assert.equal(await moveAtOnce([2, 3, 1, 0]), 3);
});

test("a member who is removed while it proposes something proposes nothing", async () => {
  const { address } = await world.found({ members: ["mona", "nils"] });
  const request = { operation: "changeCharter", members: world.rosterOf(["mona"]) };
  const { asked } = await world.ctx.db.transaction(async (tx) => {
    const { charter } = (await lockBusiness(tx, address)) ?? assert.fail();
    const members = charter.members.filter((each) => each.address !== world.person("mona").address);
    const left = bufferOfHex(encodeCharter({ ...charter, members }));
    // Marked as read from a later block, or the next read of the chain would undo it.
    await tx.query(
      sql`update business set charter = ${left}, chain_block = chain_block + 1000000 where address = ${address}`,
    );
    const path = `/w/businesses/${address}/proposals`;
    const proposing = world.walletCall("mona", "POST", path, { body: request });
    await untilBlocked(world.ctx.db, tx, [proposing]);
    return { asked: proposing };
  });
  const { status, body } = await asked;
  assert.deepEqual([status, body.error?.reason], [404, "business_not_found"]);
});

/** What one statement sees; a change has to show as a whole or not at all. */
interface Snapshot {
  epoch: number;
  members: number;
  roster: number;
  stale: number;
  families: number;
}

async function snapshotOf(business: Address, removed: Address): Promise<Snapshot> {
  const [row] = await world.ctx.db.query<Snapshot>(
    sql`select epoch, (length(charter) - 3) / 21 as members,
        (select count(*)::int from business_member where business = address) as roster,
        (select count(*)::int from ballot where ballot.business = address and status = 'open'
          and ballot.epoch <> business.epoch) as stale,
        (select count(*)::int from token_family where user_address = ${removed} and revoked_at is null) as families
      from business where address = ${business}`,
  );
  assert.ok(row !== undefined);
  return row;
}

test("a removed member's votes never count, sent before or while it is removed, on any process", async () => {
  const business = await world.found({ members: ["kim", "lou", "mallory"] });
  const { address } = business;
  const removed = world.person("mallory").address;
  await logInFor(world, { business, voters: ["mallory", "kim"] });
  const open: string[] = [];
  for (const [at, proposer] of ["kim", "lou", "kim", "lou", "kim", "lou", "kim", "lou"].entries()) {
    const members = world.rosterOf([proposer], { name: `No ${at}` });
    const request = { operation: "changeCharter", members };
    open.push(await world.govern(proposer, request, { business: address, voters: [] }));
  }
  const items = await Promise.all(open.map(async (id) => world.findVote("mallory", id)));
  const change = { operation: "changeCharter", members: world.rosterOf(["kim", "lou"]) };
  const removal = await world.govern("kim", change, { business: address, voters: ["kim"] });
  const [first = ""] = open;
  assert.equal((await world.voteAs("mallory", first)).body["status"], "open");
  assert.equal((await world.voteAs("lou", removal)).body["status"], "approved");
  const snapshots: Snapshot[] = [];
  const raceOn = async (): Promise<void> => {
    for (const [at, item] of items.entries()) {
      const { body } = await world.voteAs("mallory", item.id, { item, baseUrl: processOf(at) });
      const answer = body.error?.reason ?? String(body["status"]);
      assert.ok(["open", "ballot_not_found"].includes(answer), answer);
      snapshots.push(await snapshotOf(address, removed));
    }
  };
  await Promise.all([raceOn(), world.reachEpoch(address, 1)]);
  snapshots.push(await snapshotOf(address, removed));
  const untouched = { epoch: 0, members: 3, roster: 3, stale: 0, families: 1 };
  const afterwards = { epoch: 1, members: 2, roster: 2, stale: 0, families: 0 };
  for (const each of snapshots) assert.deepEqual(each, each.epoch === 0 ? untouched : afterwards);
  for (const [at, item] of items.entries()) {
    const late = await world.voteAs("mallory", item.id, { item, baseUrl: processOf(at) });
    assert.deepEqual([late.status, late.body.error?.reason], [404, "ballot_not_found"]);
  }
  const counted = await world.ctx.db.query(
    sql`select 1 as vote from ballot_vote where member = ${removed} and epoch > 0`,
  );
  assert.equal(counted.length, 0);
  // Both of the two who are left have to approve: the removed member's vote is gone.
  assert.equal((await world.voteAs("kim", first)).body["status"], "open");
  assert.equal((await world.voteAs("lou", first, { vote: "reject" })).body["status"], "refused");
});

test("a vote waits for a change of members that is under way, which then finds the ballot free", async () => {
  const business = await world.found({ members: ["oda", "pim", "rik"] });
  const { address } = business;
  const request = { operation: "changeCharter", members: world.rosterOf(["oda", "pim"]) };
  const id = await world.govern("oda", request, { business: address, voters: [] });
  const item = await world.findVote("pim", id);
  const voters = ["oda", "pim", "rik"].map((name) => world.person(name).address);
  const { voting } = await world.ctx.db.transaction(async (tx) => {
    await lockBusiness(tx, address);
    await setVotingRights(tx, address, voters);
    const vote = world.voteAs("pim", id, { item });
    await untilBlocked(world.ctx.db, tx, [vote]);
    // A vote that held the ballot by now would deadlock: it waits for the members, and this change for the ballot. The job
    // that hints at ballots holds it for a moment only.
    await until("the ballot is free", async () => {
      const free = await tx.query(sql`select from ballot where id = ${id} for update skip locked`);
      return free.length === 1 ? true : null;
    });
    return { voting: vote };
  });
  assert.equal((await voting).body["status"], "open");
});

/**
 * Makes the `first` calls one after the other, and then forty at the same instant.
 *
 * @param table writes to it wait until many of the forty have come as far
 * @returns how many were answered by 201; the others have to be refused as too many
 */
async function countMade(
  table: string,
  { first, call }: { first: number; call: (baseUrl: string) => Promise<Answer> },
): Promise<number> {
  // A pool of its own: the calls take all connections of the world's.
  await using db = openDb({ ...world.ctx.db.connectionString, connections: 2 });
  const answers: Answer[] = [];
  for (let made = 0; made < first; made += 1) answers.push(await call(world.baseUrl));
  const { rest } = await db.transaction(async (tx) => {
    await tx.query({ name: "", text: `lock table ${table} in share mode`, values: [] });
    const calls = Array.from({ length: 40 }, async (_, at) =>
      untilAvailable(async () => call(at % 2 === 0 ? world.baseUrl : other.url)),
    );
    await untilBlocked(db, tx, 15);
    return { rest: Promise.all(calls) };
  });
  answers.push(...(await rest));
  for (const { status, body } of answers)
    assert.ok(status === 201 || body.error?.reason === "too_many", JSON.stringify(body));
  return answers.filter(({ status }) => status === 201).length;
}

test("a member has five proposals open, however many come at once", async () => {
  const path = `/w/businesses/${world.business.address}/proposals`;
  let count = 0;
  const propose = async (baseUrl: string): Promise<Answer> => {
    count += 1;
    const name = `Member ${count}`;
    const members = world.rosterOf(["alice", "bob", "dave"], { name });
    const body = { operation: "changeCharter", members };
    return world.walletCall("alice", "POST", path, { body, baseUrl });
  };
  assert.equal(await countMade("business_proposal", { first: 1, call: propose }), 5);
});

const found = async (baseUrl: string): Promise<Answer> =>
  world.askFounding({ members: ["alice", "eva"], baseUrl });

test("an identity has twenty foundings open, however many come at once", async () => {
  assert.equal(await countMade("business", { first: 15, call: found }), 20);
});

test("a wallet leaves twenty boxes, however many come at once", async () => {
  const expiresAt = world.ctx.clock.now() + 600;
  const leave = async (baseUrl: string): Promise<Answer> => {
    const box = randomBytes(40).toString("base64url");
    return world.walletCall("alice", "POST", "/w/mailbox", { body: { box, expiresAt }, baseUrl });
  };
  assert.equal(await countMade("mailbox", { first: 15, call: leave }), 20);
});

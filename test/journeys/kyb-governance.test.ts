// What members decide about their own business, over the public routes and on the embedded chain.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import type { Address, Hex } from "@svc/protocol";
import { findBusiness, suspendBusiness } from "../../service/src/kyb/index.ts";
import { finishRemovals } from "../../service/src/kyb/business/removal.ts";
import { requestLook } from "../../service/src/kyb/business/roster-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { loadWalletCalls } from "../../service/src/kyb/business/wallet-calls.ts";
import { actsOn } from "../audited-acts.ts";
import { type KybWorld, openKybWorld, type TestBusiness } from "../kyb-world.ts";

const day = 86_400;
let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

const rowOf = async ({ address }: { address: Address }) => {
  const business = await findBusiness(world.ctx.db, address);
  assert.ok(business !== null);
  return business;
};

/** The state of a business on the chain. */
const chainOf = async (address: Address) => (await loadWalletCalls()).read(world.ctx, address);

const changeTo = (members: object[]) => ({ operation: "changeCharter", members });

/** The members' names by address. */
const namesIn = (charter: unknown): Record<string, string> => {
  const { members } = charter as { members: { address: string; name: string }[] };
  return Object.fromEntries(members.map(({ address, name }) => [address, name]));
};

/** Members approve several acts before the service can learn what became of the first. @returns the proposals' ids */
async function approveAtOnce(
  { address }: TestBusiness,
  requests: readonly Record<string, unknown>[],
  voters: readonly [string, ...string[]],
): Promise<string[]> {
  const ids: string[] = [];
  for (const request of requests)
    ids.push(await world.govern(voters[0], request, { business: address, voters: [] }));
  await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from business where address = ${address} for share`);
    for (const id of ids)
      for (const name of voters) assert.equal((await world.voteAs(name, id)).status, 200);
  });
  return ids;
}

test("members and rules change when the members decided and the chain has it", async () => {
  const { business } = world;
  const [bob] = world.rosterOf(["bob"]);
  const id = await world.govern(
    "alice",
    {
      operation: "changeCharter",
      members: [...world.rosterOf(["alice", "dave"]), { ...bob, votingRights: false }],
      rules: { data_requests: "UNANIMOUS" },
    },
    { voters: ["alice", "bob"] },
  );
  const row = await world.reachEpoch(business.address, 1);
  assert.equal(row.charter.rules.data_requests, "UNANIMOUS");
  assert.equal(row.charter.rules.signature_requests, "MAJORITY");
  await world.reachProposal("dave", id, "executed");
  const seen = await world.businessOf("dave");
  const members = seen["members"] as { name: string; address: string }[];
  assert.deepEqual(members.map(({ name }) => name).toSorted(), ["alice", "bob", "dave"]);
  const { body } = await world.call("GET", `/api/v1/kyb/members/${business.address}`);
  const shown = body["members"] as { votingRights: boolean }[];
  assert.equal(shown.filter(({ votingRights }) => votingRights).length, 2, "bob is left without");
  await assert.rejects(world.businessOf("carol"), /member of no business/);
  const refused = await world.walletCall(
    "carol",
    "POST",
    `/w/businesses/${business.address}/proposals`,
    { body: { operation: "startRemoval", member: world.person("bob").address } },
  );
  assert.equal(refused.status, 404);
});

test("a new member is called what the members approved, not what one of them proposed beside it", async () => {
  const business = await world.found({ members: ["anna", "bela", "cleo"] });
  const { address } = business;
  const called = (name: string): Record<string, unknown> => ({
    operation: "changeCharter",
    members: [
      ...world.rosterOf(["anna", "bela", "cleo"]),
      { address: world.person("dora").address, name, votingRights: true },
    ],
  });
  const options = { business: address };
  const id = await world.govern("anna", called("Dora"), { ...options, voters: ["anna"] });
  await world.govern("cleo", called("Dr. Dora, CEO"), { ...options, voters: [] });
  assert.equal((await world.voteAs("bela", id)).body["status"], "approved");
  await world.reachEpoch(business.address, 1);
  const { members } = await world.businessOf("anna", address);
  const dora = (members as { name: string; address: string }[]).find(
    (member) => member.address === world.person("dora").address,
  );
  assert.equal(dora?.name, "Dora");
});

test("a member who comes back is called what the members approved last", async () => {
  const business = await world.found({ members: ["lotte"] });
  const { address } = business;
  const [named] = world.rosterOf(["milan"]);
  const own = world.rosterOf(["lotte"]);
  const rosters = [
    [...own, { ...named, name: "Milan" }],
    own,
    [...own, { ...named, name: "Mila" }],
  ];
  for (const [at, members] of rosters.entries()) {
    const voters = at === 1 ? ["lotte", "milan"] : ["lotte"];
    await world.govern(
      "lotte",
      { operation: "changeCharter", members },
      { business: address, voters },
    );
    await world.reachEpoch(business.address, at + 1);
  }
  const called = namesIn(await world.businessOf("milan", address));
  assert.equal(called[world.person("milan").address], "Mila");
});

test("who votes sees members by the names that they have, whatever the proposer calls them", async () => {
  const business = await world.found({ members: ["nora", "otto", "pia"] });
  const { address } = business;
  const named = (name: string, called: string): object => ({
    address: world.person(name).address,
    name: called,
    votingRights: true,
  });
  const members = [named("nora", "otto"), named("otto", "nora"), named("quin", "pia")];
  const request = { operation: "changeCharter", members };
  const id = await world.govern("nora", request, { business: address, voters: [] });
  const item = await world.findVote("otto", id);
  const { proposals } = await world.businessOf("otto", address);
  const [listed] = proposals as Record<string, unknown>[];
  const as = (person: string, name = person) => ({ [world.person(person).address]: name });
  const next = { ...as("nora"), ...as("otto"), ...as("quin", "pia") };
  assert.deepEqual(namesIn(item["charter"]), next);
  assert.deepEqual(namesIn(listed?.["charter"]), next);
  assert.deepEqual(namesIn(item["current"]), { ...as("nora"), ...as("otto"), ...as("pia") });
  await world.voteAs("nora", id);
  await world.voteAs("otto", id);
  await world.reachEpoch(business.address, 1);
  assert.deepEqual(namesIn(await world.businessOf("quin", address)), next);
});

test("a change of the roster voids open votes, and they are collected anew", async () => {
  const business = await world.found({ members: ["erin", "frank", "grace"] });
  const { address } = business;
  const other = await world.govern(
    "erin",
    { operation: "changeCharter", members: world.rosterOf(["erin", "frank"]) },
    { business: address, voters: ["erin"] },
  );
  const stale = await world.findVote("frank", other);
  await world.govern(
    "frank",
    { operation: "changeCharter", members: world.rosterOf(["erin", "frank", "grace", "heidi"]) },
    { business: address, voters: ["frank", "grace"] },
  );
  await world.reachEpoch(business.address, 1);
  const anew = await world.until("the vote is collected anew", async () => {
    const item = await world.findVote("frank", other);
    return item["epoch"] === 1 ? item : null;
  });
  assert.equal(anew["nonce"], 1);
  const late = await world.voteAs("frank", other, { item: stale });
  assert.equal(late.body.error?.reason, "ballot_changed");
  // Three of four voting members have to approve; the vote from before the change no longer counts.
  for (const name of ["frank", "grace"])
    assert.equal((await world.voteAs(name, other)).body["status"], "open");
  assert.equal((await world.voteAs("erin", other)).body["status"], "approved");
  const row = await world.reachEpoch(business.address, 2);
  assert.equal(row.charter.members.length, 2);
});

test("of two acts that members approved at once the second is collected anew, by those who are members then", async () => {
  const business = await world.found({ members: ["aron", "berta", "carl"] });
  const change = { operation: "changeCharter", members: world.rosterOf(["aron", "carl"]) };
  const other = { operation: "changeCharter", members: world.rosterOf(["aron", "carl", "doris"]) };
  const [first = "", second = ""] = await approveAtOnce(
    business,
    [change, other],
    ["aron", "berta"],
  );
  await world.reachEpoch(business.address, 1);
  await world.reachProposal("aron", first, "executed");
  const reopened = await world.reachProposal("aron", second, "open");
  assert.equal(reopened["nonce"], 1);
  const item = await world.findVote("aron", second);
  const late = await world.voteAs("berta", second, { item });
  assert.deepEqual([late.status, late.body.error?.reason], [404, "ballot_not_found"]);
  assert.equal((await world.voteAs("aron", second, { item })).body["status"], "open");
  const { db } = world.ctx;
  await db.transaction(async (tx) => {
    // While this lock on the signer is held, the service sends no transaction.
    await tx.query(sql`select from chain_signer for update`);
    assert.equal((await world.voteAs("carl", second)).body["status"], "approved");
    await requestLook(db, business.address);
    await world.until("the wallet is looked at", async () => {
      const found = await db.query(
        sql`select from business where address = ${business.address} and look_due_at is null`,
      );
      return found.length === 1 ? true : null;
    });
    await world.reachProposal("aron", second, "relaying");
  });
  const row = await world.reachEpoch(business.address, 2);
  assert.equal(row.charter.members.length, 3);
  await world.reachProposal("doris", second, "executed");
});

test("an act's transaction is named by its proposal's id, as the version before knows it, and a repeated one also by its number", async () => {
  const business = await world.found({ members: ["kurt", "lena", "moritz"] });
  const rosters = [["kurt", "lena"], ["kurt"]];
  const changes = rosters.map((names) => ({
    operation: "changeCharter",
    members: world.rosterOf(names),
  }));
  const ids = await approveAtOnce(business, changes, ["kurt", "lena"]);
  const second = ids[1] ?? "";
  await world.reachProposal("kurt", second, "open");
  for (const name of ["kurt", "lena"]) await world.voteAs(name, second);
  await world.reachEpoch(business.address, 2);
  const rows = await world.ctx.db.query<{ subject: string }>(
    sql`select subject_id as subject from chain_transaction
      where kind = 'business.govern' and to_address = ${business.address} order by id`,
  );
  assert.deepEqual(
    rows.map(({ subject }) => subject),
    [...ids, `${second}.1`],
  );
});

test("of acts that members approved at once, one whose effect the first already had is done, and one that became pointless fails", async () => {
  const business = await world.found({ members: ["egon", "flora", "gabi"] });
  const change = { operation: "changeCharter", members: world.rosterOf(["egon", "gabi"]) };
  const removal = { operation: "startRemoval", member: world.person("flora").address };
  const acts = [change, changeTo(world.rosterOf(["egon", "gabi"], { name: "Other" })), removal];
  const ids = await approveAtOnce(business, acts, ["egon", "gabi"]);
  await world.reachEpoch(business.address, 1);
  for (const [at, status] of ["executed", "executed", "failed"].entries())
    await world.reachProposal("gabi", ids[at] ?? "", status);
  assert.deepEqual(await world.inboxOf("egon"), []);
});

test("an act that the contract refuses, with no other act before it, fails", async () => {
  const business = await world.found({ members: ["hugo"] });
  const { address } = business;
  const change = changeTo(world.rosterOf(["hugo", "ilse"]));
  const id = await world.govern("hugo", change, { business: address, voters: [] });
  const hash: Hex = `0x${"31".repeat(32)}`;
  await world.ctx.db.query(
    sql`update ballot set hash = decode(${hash.slice(2)}, 'hex') where id = ${id}`,
  );
  const voted = await world.voteAs("hugo", id, { changed: { hash } });
  assert.equal(voted.body["status"], "approved");
  await world.reachProposal("hugo", id, "failed");
});

test("a removed member's vote never counts", async () => {
  const business = await world.found({ members: ["ivan", "judy", "mallory"] });
  const { address } = business;
  const id = await world.govern(
    "mallory",
    { operation: "changeCharter", members: world.rosterOf(["mallory"]) },
    { business: address, voters: ["mallory"] },
  );
  await world.govern(
    "ivan",
    { operation: "changeCharter", members: world.rosterOf(["ivan", "judy"]) },
    { business: address, voters: ["ivan", "judy"] },
  );
  await world.reachEpoch(business.address, 1);
  const item = await world.findVote("ivan", id);
  const refused = await world.voteAs("mallory", id, { item });
  assert.deepEqual([refused.status, refused.body.error?.reason], [404, "ballot_not_found"]);
  assert.equal((await world.voteAs("ivan", id, { vote: "reject" })).body["status"], "refused");
});

test("members see how the vote on a proposal stands while it is open", async () => {
  const business = await world.found({ members: ["yara", "zeno", "abel"] });
  const { address } = business;
  const request = { operation: "changeCharter", members: world.rosterOf(["yara", "zeno"]) };
  const id = await world.govern("yara", request, { business: address });
  await world.voteAs("abel", id, { vote: "reject" });
  const open = await world.reachProposal("yara", id, "open");
  const { needed, approvals, refusals } = open;
  assert.deepEqual({ needed, approvals, refusals }, { needed: 2, approvals: 1, refusals: 1 });
  const secondsLeft = Number(open["expiresAt"]) - world.ctx.clock.now();
  assert.ok(secondsLeft <= 7 * 86_400 && secondsLeft > 7 * 86_400 - 60, `${secondsLeft}`);
  await world.voteAs("zeno", id);
  const done = await world.reachProposal("yara", id, "executed");
  assert.equal(done["approvals"], undefined);
});

test("whoever proposed something takes it back until it is decided, and may propose anew", async () => {
  const business = await world.found({ members: ["tara", "ulf", "vera"] });
  const { address } = business;
  const roster = ["tara", "ulf", "xaver"];
  const requestAs = (name: string) => changeTo(world.rosterOf(roster, { name }));
  const retract = async (name: string, id: string) => {
    const path = `/w/businesses/${address}/proposals/${id}/retract`;
    const { status, body } = await world.walletCall(name, "POST", path, { body: {} });
    return [status, body["status"] ?? body.error?.reason];
  };
  const ids: string[] = [];
  for (let count = 1; count <= 5; count += 1)
    ids.push(await world.govern("tara", requestAs(`No ${count}`), { business: address }));
  const [first = "", second = ""] = ids;
  const item = await world.findVote("ulf", first);
  assert.deepEqual(await retract("ulf", first), [404, "ballot_not_found"]);
  assert.deepEqual(await retract("mallory", first), [404, "business_not_found"]);
  assert.deepEqual(await retract("tara", "01JD3Z"), [404, "ballot_not_found"]);
  for (let times = 1; times <= 2; times += 1)
    assert.deepEqual(await retract("tara", first), [200, "retracted"]);
  const late = await world.voteAs("ulf", first, { item });
  assert.equal(late.body.error?.reason, "ballot_over");
  assert.ok((await world.inboxOf("ulf")).every(({ id }) => id !== first));
  await world.reachProposal("ulf", first, "retracted");
  await world.govern("tara", requestAs("No 1"), { business: address, voters: [] });
  assert.equal((await world.voteAs("ulf", second)).body["status"], "approved");
  assert.deepEqual(await retract("tara", second), [409, "ballot_over"]);
  await Promise.all([
    world.reachEpoch(business.address, 1),
    world.reachProposal("tara", second, "executed"),
  ]);
  const acts = (await actsOn(world.ctx.db, address)).map((act) => act.split(" ")[1]);
  const all = ["found", "register", "verify", "propose", "retract", "govern.executed", "roster"];
  assert.deepEqual(new Set(acts), new Set(all.map((act) => `business.${act}`)));
});

test("no business becomes a member of one: nobody has its key, and where all must agree nobody could any more", async () => {
  const rules = { governance: "UNANIMOUS" } as const;
  const business = await world.found({ members: ["rosa", "sven"], rules });
  for (const { address } of [business, world.business]) {
    const members = [
      ...world.rosterOf(["rosa", "sven"]),
      { address, name: "Us", votingRights: true },
    ];
    const path = `/w/businesses/${business.address}/proposals`;
    const body = { operation: "changeCharter", members };
    const answer = await world.walletCall("rosa", "POST", path, { body });
    assert.deepEqual([answer.status, answer.body.error?.reason], [400, "invalid_request"]);
    assert.match(answer.body.error?.message ?? "", /is a business/);
  }
});

test("a member who seems lost is removed after 30 days", async () => {
  const business = await world.found({ members: ["niaj", "olivia", "peggy"] });
  const { address } = business;
  const lost = world.person("peggy").address;
  const removal = { operation: "startRemoval", member: lost };
  await world.govern("niaj", removal, { business: address, voters: ["niaj", "olivia"] });
  const { member, endsAt } = await world.until("the removal is shown to all", async () => {
    const seen = await world.businessOf("peggy", address);
    return seen["removal"] as { member: string; endsAt: number } | null;
  });
  assert.equal(member, lost);
  const early = endsAt - world.ctx.clock.now() - 60;
  await world.advance(early);
  assert.equal((await rowOf(business)).epoch, 0);
  await world.advance(120);
  const row = await world.reachEpoch(business.address, 1);
  assert.equal(row.charter.members.length, 2);
  assert.equal((await chainOf(address)).epoch, 1);
});

test("a member who is there ends its removal with a signature, and is safe for 90 days", async () => {
  const business = await world.found({ members: ["rupert", "sybil", "trent"] });
  const { address } = business;
  const request = { operation: "startRemoval", member: world.person("trent").address };
  const voters = ["rupert", "sybil"];
  await world.govern("rupert", request, { business: address, voters });
  const { keepNonce } = await world.until("the removal is shown", async () => {
    const seen = await world.businessOf("trent", address);
    return seen["removal"] as { keepNonce: number } | null;
  });
  const path = `/w/businesses/${address}/keep`;
  const wrong = {
    signature: world.keepSignature("sybil", { business: address, nonce: keepNonce }),
  };
  assert.equal((await world.walletCall("trent", "POST", path, { body: wrong })).status, 422);
  const other = await world.walletCall("sybil", "POST", path, { body: wrong });
  assert.deepEqual([other.status, other.body.error?.reason], [409, "nothing_to_end"]);
  const signature = world.keepSignature("trent", { business: address, nonce: keepNonce });
  const kept = await world.walletCall("trent", "POST", path, { body: { signature } });
  assert.deepEqual(kept.body, { ended: "removal" });
  await world.until("the removal has ended", async () =>
    (await chainOf(address)).removal === null ? true : null,
  );
  await world.until("and is no longer shown", async () =>
    (await world.businessOf("trent", address))["removal"] === null ? true : null,
  );
  const again = await world.walletCall("rupert", "POST", `/w/businesses/${address}/proposals`, {
    body: request,
  });
  assert.deepEqual([again.status, again.body.error?.reason], [422, "removal_refused"]);
  await world.advance(90 * day);
  await world.govern("rupert", request, { business: address, voters: [] });
});

test("any vote of a member under removal keeps the service from removing it", async () => {
  const business = await world.found({ members: ["uma", "victor", "walter"] });
  const { address } = business;
  const member = world.person("walter").address;
  const voters = ["uma", "victor"];
  await world.govern("uma", { operation: "startRemoval", member }, { business: address, voters });
  await world.until("the removal is shown", async () =>
    (await world.businessOf("walter", address))["removal"] === null ? null : true,
  );
  const id = await world.govern(
    "uma",
    { operation: "changeCharter", members: world.rosterOf(["uma", "victor"]) },
    { business: address, voters: [] },
  );
  const answer = await world.voteAs("walter", id, { vote: "reject" });
  assert.equal(answer.body["removalOpen"], true);
  await world.advance(31 * day);
  await finishRemovals(world.ctx);
  const sent = await world.ctx.db.query(
    sql`select 1 as found from chain_transaction where kind = 'business.remove' and to_address = ${address}`,
  );
  assert.equal(sent.length, 0);
  const seen = await world.businessOf("walter", address);
  assert.equal((seen["removal"] as { hasAnswered: boolean }).hasAnswered, true);
});

test("a removal under way ends when the business moves", async () => {
  const business = await world.found({ members: ["zoe", "yan", "xia"] });
  const successor = await world.found({ members: ["zoe"] });
  const { address } = business;
  const options = { business: address, voters: ["zoe", "yan"] };
  const member = world.person("xia").address;
  await world.govern("zoe", { operation: "startRemoval", member }, options);
  await world.until("the removal is shown", async () =>
    (await world.businessOf("zoe", address))["removal"] === null ? null : true,
  );
  await world.govern("zoe", { operation: "moveTo", successor: successor.address }, options);
  await world.until("the business has moved", async () =>
    (await rowOf(business)).status === "moved" ? true : null,
  );
  assert.equal((await world.businessOf("xia", address))["removal"], null);
});

test("a business proposes no move to another that may move to it: none would be left", async () => {
  const one = await world.found({ members: ["wanda"] });
  const other = await world.found({ members: ["wanda"] });
  const back = { operation: "moveTo", successor: one.address };
  const to = { operation: "moveTo", successor: other.address };
  const id = await world.govern("wanda", to, { business: one.address, voters: [] });
  const path = `/w/businesses/${other.address}/proposals`;
  const refused = await world.walletCall("wanda", "POST", path, { body: back });
  assert.deepEqual([refused.status, refused.body.error?.reason], [400, "invalid_request"]);
  const retract = async ({ address }: TestBusiness) => {
    const own = `/w/businesses/${address}/proposals/${id}/retract`;
    return (await world.walletCall("wanda", "POST", own, { body: {} })).status;
  };
  assert.deepEqual([await retract(other), await retract(one)], [404, 200]);
  await world.govern("wanda", back, { business: other.address, voters: [] });
});

test("members move their business to another wallet, and nothing goes on in the old one", async () => {
  const { ctx } = world;
  const business = await world.found({ members: ["yusuf"] });
  const { address } = business;
  const successor = await world.found({ members: ["yusuf"], name: "Muster Zwei AG" });
  const move = { operation: "moveTo", successor: successor.address };
  const change = { operation: "changeCharter", members: world.rosterOf(["yusuf", "zora"]) };
  const [, late = ""] = await approveAtOnce(business, [move, change], ["yusuf"]);
  const row = await world.until("the business has moved", async () => {
    const found = await rowOf(business);
    return found.status === "moved" ? found : null;
  });
  assert.equal(row.successor, successor.address);
  const seen = await world.call("GET", `/api/v1/kyb/status/${address}`);
  assert.deepEqual([seen.body["status"], seen.body["verified"]], ["moved", false]);
  await world.reachProposal("yusuf", late, "failed");
  await assert.rejects(suspendBusiness(ctx, address, "test"), /this one is moved, not active/);
});

// What the wallets of members are refused, on every route that takes their acts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { NodeAway, RpcError } from "../../service/src/chain/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { promisedBy } from "../document-rows.ts";
import { type DataWorld, openDataWorld } from "../kyb-data-world.ts";
import { isOfMembers } from "../kyb-routes.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";

let world: DataWorld;
before(async () => {
  world = await openDataWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("401: no route for members accepts an act without a wallet session, and an API key does not count as one", async () => {
  const { routes } = promisedBy("Wallet", isOfMembers);
  // The service's key of push is public. Before its claim an offer shows who asks to whoever has the link.
  const isOpen = /^(?:GET \/w\/push\/key|POST \/w\/f\/<token>(?:\/open)?)$/;
  const withSession = routes.filter((route) => !isOpen.test(route));
  assert.ok(withSession.length >= 10);
  const refused = new Set<string>();
  const { address } = world.business;
  for (const route of withSession) {
    const [method = "", path = ""] = route.split(" ");
    const url = `${world.baseUrl}${path.replace("<address>", address).replaceAll(/<\w+>/g, "x")}`;
    for (const authorization of [undefined, world.apiKey, `Bearer ${world.apiKey}`]) {
      const answer = await fetch(url, {
        method,
        headers: {
          "content-type": "application/json",
          ...(authorization === undefined ? {} : { authorization }),
        },
        ...(method === "GET" ? {} : { body: "{}" }),
      });
      const { error } = (await answer.json()) as { error: { reason: string } };
      // Some look at the body first, and this is none of theirs.
      const isBody = method === "POST" && error.reason === "invalid_request";
      const refusal = isBody ? [400, "invalid_request"] : [401, "wallet_session_required"];
      assert.deepEqual([answer.status, error.reason], refusal, `${route} ${authorization ?? ""}`);
      if (!isBody) refused.add(route);
    }
  }
  assert.ok(refused.size >= 3, [...refused].join());
});

test("400: a proposal is held against the operation that it names: what it lacks, and what is unknown to it, is said by name", async () => {
  const path = `/w/businesses/${world.business.address}/proposals`;
  const successor = world.business.address;
  const hash = `0x${"11".repeat(32)}`;
  const operations = "changeCharter, moveTo, startRemoval, withdraw";
  const faults: readonly (readonly [Record<string, unknown>, string])[] = [
    [{}, "operation is missing"],
    [{ operation: 5 }, `operation must be one of ${operations}`],
    [{ operation: "execute" }, `operation must be one of ${operations}`],
    [{ operation: "changeCharter" }, "members is missing"],
    [{ operation: "moveTo" }, "successor is missing"],
    [{ operation: "moveTo", successor, members: [] }, "members is unknown"],
    [{ operation: "startRemoval", member: 5 }, "member must be a string"],
    [{ operation: "withdraw" }, "hash is missing"],
    [{ operation: "withdraw", hash, reason: "x" }, "reason is unknown"],
  ];
  for (const [body, fault] of faults) {
    const answer = await world.walletCall("alice", "POST", path, { body });
    assert.deepEqual(reasonOf(answer), [400, "invalid_request"], fault);
    assert.equal(answer.body.error?.message, `Invalid Request: ${fault}`);
  }
});

test("400: a business goes on only in another one of its environment whose wallet is there", async () => {
  const { address } = world.business;
  const sandbox = await world.found({ members: ["alice"], environment: "sandbox" });
  const { body: founding } = await world.askFounding({ members: ["rosa", "sven"] });
  const path = `/w/businesses/${address}/proposals`;
  for (const successor of [address, sandbox.address, founding["address"]]) {
    const body = { operation: "moveTo", successor };
    const answer = await world.walletCall("alice", "POST", path, { body });
    assert.deepEqual(reasonOf(answer), [400, "invalid_request"]);
    assert.match(answer.body.error?.message ?? "", /another active business/);
  }
});

/** A change that differs from others by what a new member is called. */
const changeAs = (called: string, names = ["alice", "bob"]): object => ({
  operation: "changeCharter",
  members: [...names, "dave"].map((name) => {
    const { address } = world.person(name);
    return { address, name: name === "dave" ? called : name, votingRights: true };
  }),
});

test("409: a member has at most five proposals open, and at most twenty foundings", async () => {
  const path = `/w/businesses/${world.business.address}/proposals`;
  const proposeAs = async (name: string, called: string): Promise<Answer> =>
    world.walletCall(name, "POST", path, { body: changeAs(called) });
  const made: unknown[] = [];
  for (const called of ["d1", "d2", "d3", "d4", "d5"]) {
    const { status, body } = await proposeAs("alice", called);
    assert.equal(status, 201);
    made.push(body);
  }
  assert.deepEqual(reasonOf(await proposeAs("alice", "d6")), [409, "too_many"]);
  const again = await proposeAs("alice", "d3");
  assert.deepEqual([again.status, again.body], [200, made[2]], "its answer may have been lost");
  const other = await proposeAs("bob", "d3");
  assert.equal(other.status, 201, "others may propose still");
  const found = async (): Promise<Answer> => world.askFounding({ members: ["ed", "eva"] });
  for (let count = 1; count <= 20; count += 1) assert.equal((await found()).status, 201);
  assert.deepEqual(reasonOf(await found()), [409, "too_many"]);
});

test("409: a business has at most twenty proposals, with those on their way to the chain, and the first of each member", async () => {
  const members = ["ann", "ben", "cleo", "dora", "emil"];
  const { address } = await world.found({ members });
  let count = 0;
  const propose = async (name: string): Promise<Answer> => {
    count += 1;
    const body = changeAs(`dave ${count}`, members);
    return world.walletCall(name, "POST", `/w/businesses/${address}/proposals`, { body });
  };
  const ids: string[] = [];
  for (const name of members.slice(0, 4))
    for (let own = 1; own <= 5; own += 1)
      ids.push(String((await propose(name)).body["proposalId"]));
  assert.equal(
    (await propose("emil")).status,
    201,
    "the others cannot keep a member from proposing",
  );
  assert.deepEqual(reasonOf(await propose("emil")), [409, "too_many"]);
  const [first = "", ...refused] = ids.slice(0, 3);
  for (const id of refused)
    for (const name of members.slice(2)) await world.voteAs(name, id, { vote: "reject" });
  assert.equal((await propose("emil")).status, 201, "one that was refused is none any more");
  for (const name of members.slice(0, 2)) await world.voteAs(name, first);
  const item = await world.findVote("cleo", first);
  await world.ctx.db.transaction(async (tx) => {
    // Nothing is sent while somebody else holds the signer.
    await tx.query(sql`select from chain_signer for update`);
    const decided = await world.voteAs("cleo", first, { item });
    assert.equal(decided.body["status"], "approved");
    assert.deepEqual(reasonOf(await propose("emil")), [409, "too_many"]);
  });
});

test("what waits for an identity is read in pages, votes before invitations, and once each", async () => {
  for (const name of ["Other AG", "Third AG"])
    assert.equal((await world.askFounding({ members: ["zoe", "bob"], name })).status, 201);
  const whole = await world.inboxOf("bob");
  const kinds = whole.map(({ kind }) => kind);
  assert.deepEqual(kinds.slice(-3), ["governance", "invitation", "invitation"]);
  const pages: unknown[][] = [];
  let query = "?limit=3";
  while (query !== "") {
    const { status, body } = await world.walletCall("bob", "GET", `/w/inbox${query}`);
    assert.equal(status, 200);
    pages.push(body["items"] as unknown[]);
    const next = body["nextCursor"] as string | undefined;
    query = next === undefined ? "" : `?limit=3&cursor=${encodeURIComponent(next)}`;
  }
  assert.ok(pages.length >= 3 && pages.every((page) => page.length <= 3));
  assert.deepEqual(pages.flat(), whole);
});

let request: Promise<string> | undefined;
/** The request that the next tests vote on: a merchant has one open at a business. */
const asked = async (): Promise<string> =>
  (request ??= world.ask().then(({ body }) => String(body["requestId"])));

test("400: an approval names the epoch and the time for which it is signed, and has a signature's length", async () => {
  const id = await asked();
  const signature = `0x${"11".repeat(65)}`;
  const { epoch, validUntil } = await world.findVote("alice", id);
  const whole = { vote: "approve", signature, epoch, validUntil };
  const vote = async (body: object) =>
    reasonOf(await world.walletCall("alice", "POST", `/w/votes/${id}`, { body }));
  for (const wrong of [{ epoch: undefined }, { validUntil: undefined }, { signature: "0x11" }])
    assert.deepEqual(await vote({ ...whole, ...wrong }), [400, "invalid_request"]);
  assert.notDeepEqual(await vote(whole), [400, "invalid_request"]);
});

test("422: a vote that names an optional field twice, or a field that is not optional, is refused and changes nothing", async () => {
  const id = await asked();
  const item = await world.findVote("alice", id);
  const field = "BUSINESS_DIRECTOR_COUNT";
  for (const optional of [[field, field], ["BUSINESS_LEGAL_NAME"], ["BUSINESS_WEBSITE"]]) {
    const answer = await world.voteAs("alice", id, { item, optional });
    assert.deepEqual(reasonOf(answer), [422, "result_refused"], optional.join());
  }
  assert.equal((await world.voteAs("alice", id, { item, optional: [field] })).status, 200);
});

test("400: no contract gets a vote, which it could never give; without one it may be a member", async () => {
  const business = await world.found({ members: ["carla"] });
  const carla = { address: world.person("carla").address, name: "carla", votingRights: true };
  const propose = async (votingRights: boolean) => {
    const contract = { address: world.ctx.chain.contracts.registry, name: "Us", votingRights };
    const body = { operation: "changeCharter", members: [carla, contract] };
    return world.walletCall("carla", "POST", `/w/businesses/${business.address}/proposals`, {
      body,
    });
  };
  const refused = await propose(true);
  assert.deepEqual(reasonOf(refused), [400, "invalid_request"]);
  assert.match(refused.body.error?.message ?? "", /is a contract/);
  assert.equal((await propose(false)).status, 201);
});

test("503: nothing that only the chain knows is proposed while its node is away, refuses or does not have it", async (t) => {
  const business = await world.found({ members: ["petra"] });
  const faults = [new NodeAway("the node did not answer"), new RpcError(-32_005, "too many calls")];
  // A node that is behind has no wallet there, and its answer is empty; one that is broken tells anything.
  const answers = ["0x", "0x01", null, "yes"];
  let answer: unknown = new Error("asked before a fault was chosen");
  const away = t.mock.method(world.ctx.chain.node, "request", async () => {
    if (answer instanceof Error) throw answer;
    return answer;
  });
  const [petra, lars] = ["petra", "lars"].map((name) => ({
    address: world.person(name).address,
    name,
    votingRights: true,
  }));
  const path = `/w/businesses/${business.address}/proposals`;
  for (const body of [
    { operation: "changeCharter", members: [petra, lars] },
    { operation: "startRemoval", member: petra?.address },
    { operation: "withdraw", hash: `0x${"11".repeat(32)}` },
  ]) {
    // Without code the account of a new member is that of a key, and with some it is a contract.
    const told = body.operation === "changeCharter" ? answers.slice(2) : answers;
    for (answer of [...faults, ...told]) {
      const refused = await world.walletCall("petra", "POST", path, { body });
      assert.deepEqual(reasonOf(refused), [503, "chain_unavailable"], body.operation);
    }
  }
  away.mock.restore();
});

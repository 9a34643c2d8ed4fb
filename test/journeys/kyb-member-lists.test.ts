// What members look up of their own business, whom it takes no requests of, and what it released; and what their wallets
// are refused, on every route that takes their acts.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, encodeCharter } from "@svc/protocol";
import { sql } from "../../service/src/platform/database/db.ts";
import { purgeBallots } from "../../service/src/kyb/ballot/ballots.ts";
import { actsOn } from "../audited-acts.ts";
import {
  type DataWorld,
  openDataWorld,
  registerEndpoint,
  requestsPath,
} from "../kyb-data-world.ts";
import { addMerchant } from "../kyb-merchant.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { runHourlyJobs } from "../kyb-retention.ts";
import { NodeAway, RpcError } from "../../service/src/chain/index.ts";
import { promisedBy } from "../document-rows.ts";
import { isOfMembers } from "../kyb-routes.ts";
import { type Answer, reasonOf } from "../kyb-world.ts";

let world: DataWorld;
/** Another business, of alice alone. */
let other: Address;
before(async () => {
  world = await openDataWorld();
  [other] = (await insertBusinesses(world, 1, ["alice"])) as [Address];
});
after(async () => world[Symbol.asyncDispose]());

/** @returns its API key */
async function merchantNamed(name: string): Promise<string> {
  const entitlements = ["kyb:data-request", "kyb:pii"];
  const { apiKey } = await addMerchant(world, { name, entitlements, fundsRappen: 10_000n });
  await registerEndpoint(world, apiKey);
  return apiKey;
}

type Item = Record<string, unknown>;

/** @returns the items of all pages of one, in their order */
async function listAs(
  name: string,
  list: string,
  business = world.business.address,
): Promise<Item[]> {
  const items: Item[] = [];
  let cursor = "";
  do {
    const path = `/w/businesses/${business}/${list}?limit=1${cursor}`;
    const { status, body } = await world.walletCall(name, "GET", path);
    assert.equal(status, 200, JSON.stringify(body));
    const page = body["items"] as Item[];
    assert.ok(page.length <= 1);
    items.push(...page);
    const next = body["nextCursor"] as string | undefined;
    cursor = next === undefined ? "" : `&cursor=${next}`;
  } while (cursor !== "");
  return items;
}

const withoutTime = (items: readonly Item[]): Item[] =>
  items.map(({ releasedAt, ...rest }) => {
    assert.equal(typeof releasedAt, "number");
    return rest;
  });

/** Checks the refusals to non-members, and of malformed addresses and pages. */
async function checkRefusals(list: string): Promise<void> {
  const answers = [
    ["mallory", `${world.business.address}/${list}`],
    ["alice", `${world.person("alice").address}/${list}`],
    ["alice", `x/${list}`],
    ["alice", `${world.business.address}/${list}?cursor=x`],
    ["alice", `${world.business.address}/${list}?limit=101`],
  ] as const;
  const reasons: unknown[] = [];
  for (const [name, path] of answers) {
    const { status, body } = await world.walletCall(name, "GET", `/w/businesses/${path}`);
    reasons.push([status, body.error?.reason]);
  }
  const notFound = [404, "business_not_found"];
  const invalid = [400, "invalid_request"];
  assert.deepEqual(reasons, [notFound, notFound, notFound, invalid, invalid]);
}

test("members see whom their business takes no requests of, and take a block back by what they see", async () => {
  const path = `/w/businesses/${world.business.address}/block`;
  const requests: string[] = [];
  for (const name of ["First shop", "Second shop"]) {
    const apiKey = await merchantNamed(name);
    const { body } = await world.ask({}, { apiKey });
    const requestId = String(body["requestId"]);
    requests.unshift(requestId);
    await world.walletCall("alice", "POST", path, { body: { requestId } });
  }
  const [second, first] = await listAs("carol", "blocks");
  const shown = { name: "Second shop", domain: "localhost" };
  assert.deepEqual(await listAs("alice", "blocks", other), []);
  assert.deepEqual([second?.["requester"], second?.["requestId"]], [shown, requests[0]]);
  assert.deepEqual(Object.keys(second ?? {}), ["requester", "requestId", "blockedAt"]);
  assert.ok(Math.abs(Number(second?.["blockedAt"]) - world.ctx.clock.now()) < 60);
  const body = { requestId: second?.["requestId"], isBlocked: false };
  assert.equal((await world.walletCall("bob", "POST", path, { body })).status, 200);
  assert.deepEqual(await listAs("alice", "blocks"), [first]);
  const [alice, bob] = ["alice", "bob"].map((name) => world.person(name).address);
  const acts = [`${alice} business.block`, `${alice} business.block`, `${bob} business.unblock`];
  assert.deepEqual((await actsOn(world.ctx.db, world.business.address)).slice(-3), acts);
  await checkRefusals("blocks");
});

test("a member without a vote blocks nobody, and nobody is blocked by a request to another business", async () => {
  const { ctx } = world;
  const { body: asked } = await world.ask({}, { apiKey: await merchantNamed("Third shop") });
  const body = { requestId: String(asked["requestId"]) };
  const block = async (name: string, business: string): Promise<unknown[]> => {
    const path = `/w/businesses/${business}/block`;
    const answer = await world.walletCall(name, "POST", path, { body });
    return [answer.status, answer.body.error?.reason];
  };
  assert.deepEqual(await block("alice", other), [404, "request_not_found"]);
  const rule = "MAJORITY";
  const rules = { signature_requests: rule, data_requests: rule, governance: rule } as const;
  const members = ["alice", "carol"].map((name) => {
    const { address } = world.person(name);
    return { address, isVoting: name === "alice" };
  });
  const charter = Buffer.from(encodeCharter({ rules, members }).slice(2), "hex");
  await ctx.db.query(sql`update business set charter = ${charter} where address = ${other}`);
  assert.deepEqual(await block("carol", other), [403, "not_a_member"]);
});

test("members see for ever what their business released, to whom and by which vote, and no value", async () => {
  const optional = ["BUSINESS_DIRECTOR_COUNT"];
  const release = async (apiKey: string, changed: object, sent: readonly string[]) => {
    const { body } = await world.ask({ ...changed }, { apiKey });
    const id = String(body["requestId"]);
    await world.voteAs("alice", id, { optional: sent });
    await world.voteAs("bob", id);
    await world.until(`${id} is released`, async () => {
      const { body: request } = await world.call("GET", `/api/v1/kyb/data-requests/${id}`, {
        apiKey,
      });
      return request["status"] === "released" ? true : null;
    });
    return id;
  };
  const first = await release(await merchantNamed("Early bank"), {}, optional);
  const purpose = "To renew the account of the company";
  const name = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: optional, purpose };
  const second = await release(await merchantNamed("Late bank"), name, []);
  const open = await world.ask({}, { apiKey: await merchantNamed("Waiting bank") });
  assert.equal(open.status, 201);
  const expected = [
    {
      requestId: second,
      requester: { name: "Late bank", domain: "localhost" },
      purpose,
      fields: ["BUSINESS_LEGAL_NAME"],
    },
    {
      requestId: first,
      requester: { name: "Early bank", domain: "localhost" },
      purpose: "To open an account for the company",
      fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME", "BUSINESS_DIRECTOR_COUNT"],
    },
  ];
  const listed = await listAs("carol", "releases");
  assert.deepEqual(withoutTime(listed), expected);
  assert.deepEqual(await listAs("alice", "releases", other), []);
  assert.ok(!/Muster|Canary|Beispiel/.test(JSON.stringify(listed)));
  await checkRefusals("releases");
  await world.advance(31 * 86_400);
  await runHourlyJobs(world.ctx);
  const kept = sql`select from data_release where attestation_sealed is not null`;
  assert.deepEqual(await world.ctx.db.query(kept), []);
  assert.deepEqual(await listAs("carol", "releases"), listed);
});

test("an optional field that the business does not have is shown to no voter, and no approval names it", async () => {
  const apiKey = await merchantNamed("Curious bank");
  const optionalFields = ["BUSINESS_DUNS", "BUSINESS_DIRECTOR_COUNT"];
  const { body } = await world.ask({ optionalFields }, { apiKey });
  const id = String(body["requestId"]);
  const item = await world.findVote("alice", id);
  assert.deepEqual(item["optional"], ["BUSINESS_DIRECTOR_COUNT"]);
  assert.deepEqual(item["unavailable"], ["BUSINESS_DUNS"]);
  const odd = await world.voteAs("alice", id, { item, optional: optionalFields });
  assert.deepEqual([odd.status, odd.body.error?.reason], [422, "result_refused"]);
  const given = { item, optional: ["BUSINESS_DIRECTOR_COUNT"] };
  assert.equal((await world.voteAs("alice", id, given)).status, 200);
  const fixed = await world.findVote("bob", id);
  assert.deepEqual(fixed["fixedOptional"], ["BUSINESS_DIRECTOR_COUNT"]);
  await world.voteAs("bob", id, { item: fixed });
  const released = await world.until("it is released", async () => {
    const list = await listAs("carol", "releases");
    return list.find(({ requestId }) => requestId === id) ?? null;
  });
  const required = ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"];
  assert.deepEqual(released["fields"], [...required, "BUSINESS_DIRECTOR_COUNT"]);
});

test("a block can be taken back by a request that was voted on long ago", async () => {
  const apiKey = await merchantNamed("Patient shop");
  const requestId = String((await world.ask({}, { apiKey })).body["requestId"]);
  const path = `/w/businesses/${world.business.address}/block`;
  await world.walletCall("alice", "POST", path, { body: { requestId } });
  await world.call("POST", `${requestsPath}/${requestId}/cancel`, { apiKey, body: {} });
  await world.advance(31 * 86_400);
  await purgeBallots(world.ctx);
  const body = { requestId, isBlocked: false };
  assert.equal((await world.walletCall("bob", "POST", path, { body })).status, 200);
  assert.equal((await world.ask({}, { apiKey })).status, 201);
});

test("401: no route for members accepts an act without a wallet session, and an API key does not count as one", async () => {
  const { routes } = promisedBy("Wallet", isOfMembers);
  // The push key is public, and before its claim an offer shows who asks to anybody with the link.
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
      // Some routes look at the body first, and this one is malformed for them.
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

/** A change that differs from others by the members' names. */
const changeAs = (called: string, names: readonly string[]): object => ({
  operation: "changeCharter",
  members: world.rosterOf(names, { name: called }),
});

test("409: a member has at most five proposals open, and at most twenty foundings", async () => {
  const path = `/w/businesses/${world.business.address}/proposals`;
  const proposeAs = async (name: string, called: string): Promise<Answer> =>
    world.walletCall(name, "POST", path, { body: changeAs(called, ["alice", "bob", "dave"]) });
  const made: unknown[] = [];
  for (const called of ["d1", "d2", "d3", "d4", "d5"]) {
    const { status, body } = await proposeAs("alice", called);
    assert.equal(status, 201);
    made.push(body);
  }
  assert.deepEqual(reasonOf(await proposeAs("alice", "d6")), [409, "too_many"]);
  const again = await proposeAs("alice", "d3");
  assert.deepEqual([again.status, again.body], [200, made[2]], "its answer may have been lost");
  assert.equal((await proposeAs("bob", "d3")).status, 201, "others may propose still");
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
    const body = changeAs(`No ${count}`, [...members, "dave"]);
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
    // While this lock on the signer is held, the service sends no transaction.
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
/** The request that the next tests vote on; a merchant may have only one open at a business. */
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
  // A node that is behind has no contract there, so its answer is empty; a broken one may answer anything.
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
    // For a new member, no code (a key's account) and some code (a contract's) are both proper answers.
    const told = body.operation === "changeCharter" ? answers.slice(2) : answers;
    for (answer of [...faults, ...told]) {
      const refused = await world.walletCall("petra", "POST", path, { body });
      assert.deepEqual(reasonOf(refused), [503, "chain_unavailable"], body.operation);
      assert.equal(refused.headers.get("retry-after"), "1");
    }
  }
  away.mock.restore();
});

// What members look up of their own business: whom it takes no requests of, and what it released.
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

/** What whoever is no member, or asks for no page, is answered. */
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

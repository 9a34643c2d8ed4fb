// Many calls at once on two processes: money is kept back, captured and freed exactly once. First merchants ask and
// cancel, members approve and refuse, and time runs out, all at random, while the ledger is looked at again and again: the
// seed is fixed; what meets what is up to the machine.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import type { Address } from "@svc/protocol";
import { topUp } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openDataWorld, registerEndpoint, requestsPath, someRequest } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { addMerchant } from "../kyb-merchant.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import type { Answer } from "../kyb-world.ts";
import { untilAvailable } from "../try-again.ts";

const members = ["alice", "bob", "carol"];
const crowd = 50;
const oneFranc = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };

await using world = await openDataWorld({ fundsRappen: 1000n });
await using second = await world.startProcess();
const { ctx, organizationId } = world;
const places = [world.baseUrl, second.url];
const placeOf = (index: number): string => places[index % places.length] ?? "";

const count = (answers: readonly Answer[]): Record<string, number> => {
  const counted: Record<string, number> = {};
  for (const { status, body } of answers) {
    const key = `${status} ${body.error?.reason ?? ""}`.trim();
    counted[key] = (counted[key] ?? 0) + 1;
  }
  return counted;
};

const account = async (apiKey = world.apiKey): Promise<Record<string, unknown>> =>
  (await world.call("GET", "/api/v1/kyb/billing/account", { apiKey })).body;

const fields = [
  "BUSINESS_LEGAL_NAME",
  "BUSINESS_REGISTRATION_NUMBER",
  "BUSINESS_COMPANY_TYPE",
  "BUSINESS_DIRECTOR_COUNT",
  "BUSINESS_DIRECTOR_NAME",
];
const workers = 8;
const stepsEach = 45;
const daySeconds = 86_400;
/** The answers that calls may get which come too late, ask too much or collide with others. */
const allowed = new Set([
  "200",
  "201",
  "402 insufficient_credit",
  "409 request_already_open",
  "409 request_not_open",
  "409 ballot_over",
  "409 ballot_changed",
  "409 already_voted",
  "422 signature_wrong",
  "429 rate_limited",
]);

/** A seeded generator of numbers from 0 to less than `below` (Marsaglia's xorshift32). */
function randomOf(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>> 0) % below;
  };
}

type Random = ReturnType<typeof randomOf>;

/** A merchant with little money, whose businesses have members of their own. */
const stormy = await addMerchant(world, {
  entitlements: ["kyb:data-request", "kyb:pii"],
  fundsRappen: 4000n,
});
const { apiKey } = stormy;
await registerEndpoint(world, apiKey);
const owners = ["dave", "erin", "frank"];
const owned = await insertBusinesses(world, 10, owners);
const requested: string[] = [];
const outcomes = new Map<string, number>();

function note({ status, body }: Answer): void {
  const outcome = `${status} ${body.error?.reason ?? ""}`.trim();
  assert.ok(allowed.has(outcome), `${outcome} ${JSON.stringify(body)}`);
  outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
}

const some = (random: Random, of: readonly string[]): string[] => of.filter(() => random(2) === 0);

async function create(random: Random, baseUrl: string): Promise<void> {
  const [first = "", ...others] = fields.toSorted(() => random(3) - 1);
  const required = [first, ...others.slice(0, random(2))];
  const optionalFields = some(random, fields).filter((name) => !required.includes(name));
  const businessWalletAddress = owned[random(owned.length)];
  const answer = await world.ask(
    { fields: required, optionalFields, businessWalletAddress },
    { apiKey, baseUrl },
  );
  note(answer);
  if (answer.status === 201) requested.push(String(answer.body["requestId"]));
}

async function cancel(random: Random, baseUrl: string): Promise<void> {
  // One of the last eight; older ones have ended.
  const id = requested.at(-1 - random(8));
  if (id === undefined) return;
  note(await world.call("POST", `${requestsPath}/${id}/cancel`, { apiKey, body: {}, baseUrl }));
}

async function vote(random: Random, baseUrl: string): Promise<void> {
  const name = owners[random(owners.length)] ?? "";
  const items = await world.inboxOf(name);
  const item = items[random(Math.max(items.length, 1))];
  if (item === undefined) return;
  const offered = (item["optional"] as (string | { name: string })[]).map((each) =>
    typeof each === "string" ? each : each.name,
  );
  const fixed = item["fixedOptional"] as string[] | null;
  const optional = fixed ?? some(random, offered);
  const kind = random(2) === 0 ? "reject" : "approve";
  note(await world.voteAs(name, item.id, { item, vote: kind, optional, baseUrl }));
}

async function work(number: number): Promise<void> {
  const random = randomOf(7919 * (number + 1));
  for (let step = 0; step < stepsEach; step += 1) {
    const baseUrl = random(2) === 0 ? world.baseUrl : second.url;
    const kind = random(20);
    if (kind < 7) await create(random, baseUrl);
    else if (kind < 9) await cancel(random, baseUrl);
    else if (kind < 18) await vote(random, baseUrl);
    else if (number === 0) await world.advance(random(4) === 0 ? daySeconds + 1 : 20);
  }
}

async function watch(over: AbortSignal): Promise<number> {
  let looks = 0;
  while (!over.aborted) {
    await checkMoney(ctx);
    looks += 1;
    await delay(50);
  }
  return looks;
}

await test("whatever happens at the same time, the ledger is right at every moment, and nothing is held at the end", async () => {
  const over = new AbortController();
  const watching = watch(over.signal);
  try {
    await Promise.all(Array.from({ length: workers }, async (_, number) => work(number)));
  } finally {
    over.abort();
  }
  assert.ok((await watching) > 10);
  for (const outcome of ["201", "402 insufficient_credit", "409 request_already_open"])
    assert.ok(outcomes.has(outcome), `${outcome} in ${JSON.stringify([...outcomes])}`);

  await world.advance(daySeconds + 31);
  await world.until("every request has ended", async () => {
    const path = `${requestsPath}?status=pending_approval`;
    const { body } = await world.call("GET", path, { apiKey });
    return (body["items"] as unknown[]).length === 0 ? true : null;
  });
  await checkMoney(ctx);
  const spent = await account(apiKey);
  const ends = await ctx.db.query<{ status: string }>(
    sql`select distinct status from data_request where business = any(${[...owned]})`,
  );
  // Which of these ends occur depends on the machine's timing too.
  const possible = new Set(["cancelled", "refused", "released"]);
  assert.ok(
    ends.length > 1 && ends.every(({ status }) => possible.has(status)),
    JSON.stringify(ends),
  );
  assert.equal(spent["frozenChf"], 0);
  const [charged] = await ctx.db.query<{ sum: string }>(
    sql`select sum(amount_rappen)::text as sum from kyb_charge where request_id = any(${requested})`,
  );
  assert.equal(Math.round(Number(spent["spentChf"]) * 100), Number(charged?.sum));
});

const businesses = await insertBusinesses(world, crowd, members);

/** The two members that decide vote at one instant, each at a process of its own. */
async function approveAtOnce(id: string): Promise<Answer[]> {
  const voters = ["alice", "bob"];
  const items = await Promise.all(voters.map(async (name) => world.findVote(name, id)));
  return Promise.all(
    voters.map(async (name, index) => {
      const item = items[index];
      if (item === undefined) throw new Error(`nothing lies in the inbox of ${name}`);
      return world.voteAs(name, id, { item, optional: [], baseUrl: placeOf(index) });
    }),
  );
}

await test("100 quotes at once are all answered, however few connections a process has to the database", async () => {
  const answers = await Promise.all(
    Array.from({ length: 2 * crowd }, async (_, index) =>
      world.call("POST", `${requestsPath}/quote`, {
        body: { ...oneFranc, businessWalletAddress: businesses[index % crowd] },
        baseUrl: placeOf(index),
      }),
    ),
  );
  assert.deepEqual(count(answers), { "200": 2 * crowd });
});

await test("50 creates for 50 businesses with funds for 10: exactly 10 succeed, and exactly 10 are charged", async () => {
  const answers = await Promise.all(
    businesses.map(async (businessWalletAddress, index) =>
      world.ask({ ...oneFranc, businessWalletAddress }, { baseUrl: placeOf(index) }),
    ),
  );
  assert.deepEqual(count(answers), { "201": 10, "402 insufficient_credit": 40 });
  const refused = answers.find(({ status }) => status === 402);
  assert.deepEqual(refused?.body.error?.details, { requiredChf: 1, availableChf: 0 });
  const held = await account();
  assert.deepEqual([held["frozenChf"], held["availableChf"], held["spentChf"]], [10, 0, 0]);
  await checkMoney(ctx);

  const made = answers.filter(({ status }) => status === 201);
  const ids = made.map(({ body }) => String(body["requestId"]));
  const votes = (await Promise.all(ids.map(approveAtOnce))).flat();
  assert.ok(
    votes.every(({ status }) => status === 200),
    JSON.stringify(count(votes)),
  );
  const deciding = votes.filter(({ body }) => body["status"] === "approved");
  assert.equal(deciding.length, 10, "each request has one vote that decides");
  await Promise.all(ids.map(async (id) => world.waitFor(id, "released")));
  const after = await account();
  assert.deepEqual([after["frozenChf"], after["availableChf"], after["spentChf"]], [0, 0, 10]);
  const { body } = await world.call("GET", "/api/v1/kyb/billing/charges?limit=100");
  assert.equal((body["items"] as unknown[]).length, 10);
  await checkMoney(ctx);
});

await test("50 creates for one business: one succeeds, 49 are told which request is open", async () => {
  await topUp(ctx, { organizationId, environment: "live", amountRappen: 100_000n }, "test");
  const businessWalletAddress = businesses[0] as Address;
  const answers = await Promise.all(
    Array.from({ length: crowd }, async (_, index) =>
      world.ask({ ...someRequest, businessWalletAddress }, { baseUrl: placeOf(index) }),
    ),
  );
  assert.deepEqual(count(answers), { "201": 1, "409 request_already_open": crowd - 1 });
  const id = answers.find(({ status }) => status === 201)?.body["requestId"];
  const told = answers.flatMap(({ body }) => body.error?.details?.["openRequestId"] ?? []);
  assert.deepEqual([...new Set(told)], [id]);
  assert.equal((await account())["frozenChf"], 7.5);
  await world.call("POST", `${requestsPath}/${String(id)}/cancel`, { body: {} });
  await checkMoney(ctx);
});

await test("a create that is sent 20 times with one Idempotency-Key makes one request", async () => {
  const businessWalletAddress = businesses[1] as Address;
  const headers = { "idempotency-key": "the-same" };
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, index) =>
      untilAvailable(async () =>
        world.ask({ ...oneFranc, businessWalletAddress }, { headers, baseUrl: placeOf(index) }),
      ),
    ),
  );
  assert.deepEqual(count(answers), { "200": 19, "201": 1 });
  assert.equal(new Set(answers.map(({ body }) => JSON.stringify(body))).size, 1);
  await checkMoney(ctx);
});

await test("under one Idempotency-Key at two processes one call takes effect, and one that is refused takes no key", async () => {
  const signIn = "evil.example wants you to sign in with your Ethereum account:\n0x00";
  const [good, bad] = [{}, { message: signIn }];
  for (let round = 0; round < 3; round += 1) {
    const key = randomBytes(8).toString("hex");
    const send = async (baseUrl: string, changed: object): Promise<Answer> =>
      world.call("POST", `${signaturesPath}/offers`, {
        baseUrl,
        headers: { "idempotency-key": key },
        body: { ...someText, ...changed },
      });
    const bodies = [bad, good, { purpose: "To agree on other terms" }, good, bad, good];
    const answers = await Promise.all(bodies.map(async (body, at) => send(placeOf(at), body)));
    const statuses = answers.map(({ status }) => status);
    const made = answers.filter(({ status }) => status < 300);
    assert.equal(new Set(made.map(({ body }) => body["offerId"])).size, 1, statuses.join());
    assert.equal(statuses.filter((status) => status === 201).length, 1, statuses.join());
    for (const at of [0, 4]) assert.ok([409, 422].includes(Number(statuses[at])), statuses.join());
    assert.ok(
      statuses.every((status) => [200, 201, 409, 422].includes(status)),
      statuses.join(),
    );
    assert.equal((await send(world.baseUrl, bad)).status, 409);
  }
});

await test("a request that is cancelled while the deciding vote comes has one end, and so has its money", async () => {
  const asked = await Promise.all(
    businesses
      .slice(10, 30)
      .map(async (businessWalletAddress) => world.ask({ ...oneFranc, businessWalletAddress })),
  );
  const ids = asked.map(({ body }) => String(body["requestId"]));
  await Promise.all(ids.map(async (id) => world.voteAs("alice", id)));
  const items = await Promise.all(ids.map(async (id) => world.findVote("bob", id)));
  const ends = await Promise.all(
    items.map(async (item, index) => {
      const [cancelled] = await Promise.all([
        world.call("POST", `${requestsPath}/${item.id}/cancel`, {
          body: {},
          baseUrl: placeOf(index),
        }),
        world.voteAs("bob", item.id, { item, baseUrl: placeOf(index + 1) }),
      ]);
      return cancelled.status === 200 ? "cancelled" : "released";
    }),
  );
  await Promise.all(ids.map(async (id, index) => world.waitFor(id, ends[index] ?? "")));
  const { frozenChf } = await account();
  assert.equal(frozenChf, 1, "the request of the test before is still open");
  await checkMoney(ctx);
});

// Many calls at once on two processes: money is kept back, captured and freed exactly once.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { topUp } from "../../service/src/accounts/index.ts";
import { openDataWorld, requestsPath, someRequest } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import type { Answer } from "../kyb-world.ts";

const members = ["alice", "bob", "carol"];
const crowd = 50;
const oneFranc = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };

await using world = await openDataWorld({ fundsRappen: 1000n });
await using second = await world.startProcess();
const { ctx, organizationId } = world;
const businesses = await insertBusinesses(world, crowd, members);
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

const account = async (): Promise<Record<string, unknown>> =>
  (await world.call("GET", "/api/v1/kyb/billing/account")).body;

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
      world.ask({ ...oneFranc, businessWalletAddress }, { headers, baseUrl: placeOf(index) }),
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

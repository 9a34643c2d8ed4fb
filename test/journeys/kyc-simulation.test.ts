// The operator's `svc simulate` plays the user of a sandbox, and nobody else.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Address } from "@svc/protocol";
import {
  buyPackage,
  createApiKey,
  createDomain,
  isAcquainted,
} from "../../service/src/accounts/index.ts";
import { simulate } from "../../service/src/kyc/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { runVerb } from "../operator-verbs.ts";
import { actsOn } from "../audited-acts.ts";
import { type KycWorld, openKycWorld } from "../kyc-world.ts";
import { until } from "../patience.ts";
import { freePort } from "../world.ts";

let world: KycWorld;
let sandbox: Sandbox;
let user: string;
before(async () => {
  world = await openKycWorld();
  sandbox = await openSandbox("localhost");
  const made = await svc("simulate", "identity", "--domain", sandbox.id);
  assert.equal(made.value["attested"], true);
  user = String(made.value["user"]);
});
after(async () => world[Symbol.asyncDispose]());

interface Sandbox {
  readonly id: string;
  readonly apiKey: string;
  readonly sourceKey: string;
}

async function openSandbox(domain: string): Promise<Sandbox> {
  const { ctx, organizationId } = world;
  const given = { organizationId, domain, environment: "sandbox" };
  const { id } = await createDomain(ctx, given, "test");
  const { key } = await createApiKey(ctx, { clientDomainId: id, name: "Test" }, "test");
  const bought = { clientDomainId: id, name: "Test", fields: null, transfers: 50, priceRappen: 0n };
  const { kycPackage } = await buyPackage(ctx, bought, "test");
  return { id, apiKey: key, sourceKey: kycPackage.sourceKey };
}

async function svc(...args: string[]): Promise<Ran> {
  return svcAt(world.ctx.config.baseUrl, ...args);
}

interface Ran {
  status: number;
  value: Record<string, unknown>;
  said: string;
}

async function svcAt(baseUrl: string, ...args: string[]): Promise<Ran> {
  const settings = { BASE_URL: baseUrl, CHAIN: world.ctx.config.chain };
  const [status, said] = await runVerb(world, args, settings);
  const value = status === 0 ? (JSON.parse(said) as Record<string, unknown>) : {};
  return { status, value, said };
}

async function ask(changed: Record<string, unknown> = {}): Promise<string> {
  const body = { user, sourceKey: sandbox.sourceKey, fields: ["IDCARD_DOB", "EMAIL"], ...changed };
  const asked = await world.ask(body, { apiKey: sandbox.apiKey });
  assert.equal(asked.status, 200, JSON.stringify(asked.body.error));
  return String(asked.body.data?.["referenceKey"]);
}

const verifiedPath = "/api/v1/blockchain/verified";

async function statusOf(referenceKey: string): Promise<Record<string, unknown>> {
  const path = `/api/v2/kyc/status?referenceKey=${referenceKey}`;
  return (await world.call("GET", path, { apiKey: sandbox.apiKey })).body.data ?? {};
}

async function untilConfirmed(order: string): Promise<void> {
  await until("the order is confirmed", async () =>
    (await statusOf(order))["status"] === "CONFIRMED" ? true : null,
  );
}

test("the organization of the sandbox knows its person, as it has to everywhere but in dev", async () => {
  const { ctx, organizationId } = world;
  assert.equal(await isAcquainted(ctx.db, organizationId, user as Address), true);
  assert.ok((await actsOn(ctx.db, sandbox.id)).some((act) => act.endsWith(" simulate.identity")));
  const uncollected = sql`select from credential where user_address = ${user} and collected_at is null`;
  assert.deepEqual(await ctx.db.query(uncollected), []);
});

test("an approval is played, and the order is confirmed", async () => {
  const order = await ask();
  assert.deepEqual((await svc("simulate", "approve", order)).value["status"], 200);
  await untilConfirmed(order);
});

test("an approval is played for a parent name beside its own", async () => {
  const order = await ask({ fields: ["DOB_PARENT_FIELD", "IDCARD_DOB"] });
  assert.deepEqual((await svc("simulate", "approve", order)).value["status"], 200);
});

test("an approval is played for an order where everything is optional, with what it offers", async () => {
  const order = await ask({ fields: [], optionalFields: ["PHONE", "PASSPORT_DOB"] });
  assert.deepEqual((await svc("simulate", "approve", order)).value["status"], 200);
  await untilConfirmed(order);
  const path = `/api/v2/kyc/receipt?referenceKey=${order}`;
  const { data } = (await world.call("GET", path, { apiKey: sandbox.apiKey })).body;
  const fields = data?.["fields"] as { field: string }[];
  assert.deepEqual(
    fields.map(({ field }) => field),
    ["PHONE"],
  );
  assert.equal(data?.["livemode"], false);
});

for (const [play, reason] of [
  ["decline", "USER_DECLINED"],
  ["expire", "EXPIRED"],
  ["wrong-data", "INVALID_CONFIRM_DATA"],
] as const)
  test(`a play of ${play} ends the order as ${reason}`, async () => {
    const order = await ask({ fields: ["EMAIL", "IDCARD_NAME", "PHONE"] });
    assert.equal((await svc("simulate", play, order)).status, 0);
    assert.equal((await statusOf(order))["failureReason"], reason);
  });

test("wrong data is played for an order where everything is optional", async () => {
  const order = await ask({ fields: [], optionalFields: ["EMAIL"] });
  assert.equal((await svc("simulate", "wrong-data", order)).value["status"], 422);
  assert.equal((await statusOf(order))["failureReason"], "INVALID_CONFIRM_DATA");
});

test("wrong data is played to the end of an order after a play that broke off, and is told of as done, also twice", async () => {
  const order = await ask({ fields: ["IDCARD_DOB", "PHONE"] });
  let calls = 0;
  const breaking: typeof fetch = async (...call) => {
    const answer = await fetch(...call);
    calls += 1;
    if (calls === 1 || calls === 4) await answer.body?.cancel();
    return answer;
  };
  for (let times = 0; times < 2; times += 1) {
    const playing = simulate({ ...world.ctx, fetch: breaking }, order, "wrong-data");
    await assert.rejects(playing, /no service answers/);
  }
  assert.equal((await statusOf(order))["status"], "PENDING");
  for (const status of [422, 410])
    assert.equal((await svc("simulate", "wrong-data", order)).value["status"], status);
  assert.equal((await statusOf(order))["failureReason"], "INVALID_CONFIRM_DATA");
});

test("a play that the service does not take is refused with its words and status 1", async () => {
  const order = await ask({ fields: ["EMAIL", "AGE_OVER_18"] });
  // A repeated decline is answered like the first.
  for (let times = 0; times < 2; times += 1)
    assert.equal((await svc("simulate", "decline", order)).status, 0);
  for (const play of ["approve", "wrong-data"]) {
    const refused = await svc("simulate", play, order);
    assert.equal(refused.status, 1, play);
    assert.match(refused.said, /the service refuses it: this request was declined already/);
  }
  const refused = await svc("simulate", "expire", order);
  assert.deepEqual(
    [refused.status, refused.said],
    [1, "svc simulate expire: only a PENDING order runs out of time\n"],
  );
});

test("a play says that no service answers, also where a proxy answers for it", async () => {
  await using proxy = createServer((_, response) => void response.writeHead(502).end("<html>"));
  proxy.listen(0, "localhost");
  await once(proxy, "listening");
  const { port } = proxy.address() as AddressInfo;
  const order = await ask({ fields: ["EMAIL"] });
  for (const place of [await freePort(), port]) {
    const nobody = `http://localhost:${place}`;
    const refused = await svcAt(nobody, "simulate", "approve", order);
    assert.equal(refused.status, 1);
    assert.ok(refused.said.includes(`no service answers at ${nobody}`), refused.said);
  }
});

test("simulation never acts for an identity it did not make, nor on the live side", async () => {
  const live = await world.ask();
  const order = String(live.body.data?.["referenceKey"]);
  for (const play of ["approve", "decline", "expire", "wrong-data", "revoke"]) {
    const refused = await svc("simulate", play, order);
    assert.equal(refused.status, 1);
    assert.match(refused.said, /simulation acts only in the sandbox/);
  }
  assert.equal((await world.statusOf(order))["status"], "PENDING");
  const made = await svc("simulate", "identity", "--domain", world.clientDomainId);
  assert.equal(made.status, 1);
  const { apiKey, sourceKey } = await openSandbox("localhost:4711");
  await ask({ fields: ["EMAIL"] });
  const foreign = await world.ask({ user, sourceKey, fields: ["EMAIL"] }, { apiKey });
  const refused = await svc("simulate", "approve", String(foreign.body.data?.["referenceKey"]));
  assert.equal(refused.status, 1);
  assert.match(refused.said, /simulation acts only in the sandbox/);
});

test("sandbox fields are invisible to a live key, and live ones to a key of the sandbox", async () => {
  const seen = async (whose: string, apiKey: string): Promise<unknown> =>
    (await world.call("GET", `${verifiedPath}?items=EMAIL&user=${whose}`, { apiKey })).body.data?.[
      "verifiedItems"
    ];
  assert.deepEqual(await seen(user, sandbox.apiKey), ["EMAIL"]);
  assert.equal(await seen(user, world.apiKey), undefined);
  assert.equal(await seen(world.person.address, sandbox.apiKey), undefined);
  assert.deepEqual(await seen(world.person.address, world.apiKey), ["EMAIL"]);
});

test("revoked fields are no longer verified", async () => {
  const order = await ask({ fields: ["ADDRESS_CITY"] });
  assert.equal((await svc("simulate", "revoke", order)).status, 0);
  const body = { user, sourceKey: sandbox.sourceKey, fields: ["ADDRESS_COUNTRY"] };
  const { body: answer } = await world.ask(body, { apiKey: sandbox.apiKey });
  assert.equal(answer.error?.message, "unverified fields");
  const others = await world.ask({ ...body, fields: ["EMAIL"] }, { apiKey: sandbox.apiKey });
  assert.equal(others.status, 200, "what was not asked for stays");
});

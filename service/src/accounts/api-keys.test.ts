import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { openContext } from "../compose.ts";
import type { Clock } from "../platform/clock.ts";
import { parseConfig } from "../platform/config/config.ts";
import type { Db } from "../platform/database/db.ts";
import { createHttp } from "../platform/http/http.ts";
import { Problem, type Reason } from "../platform/http/problems.ts";
import { createRateLimiter } from "../platform/rate-limit.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { makeApiKey } from "./api-key.ts";
import {
  accountRoutes,
  createApiKey,
  createDomain,
  createManagementKey,
  createOrganization,
  listApiKeys,
  openApiKeys,
  requireApiKey,
  revokeApiKey,
} from "./index.ts";

const settings = { MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent" };

await using database = await openTestDatabase();
await using ctx = await openContext(parseConfig({ ...settings, DATABASE_URL: database.url }));
await using apiKeys = await openApiKeys(ctx);
await using http = createHttp(ctx);
await accountRoutes({ ...ctx, apiKeys }, http);

const { id: organizationId } = await createOrganization(ctx, { name: "Example AG" }, "cli");
const live = await createDomain(
  ctx,
  { organizationId, domain: "localhost:3000", environment: "live" },
  "cli",
);
const sandbox = await createDomain(
  ctx,
  { organizationId, domain: "shop.example.com", environment: "sandbox" },
  "cli",
);

const refusedWith =
  (reason: Reason) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.reason === reason;

async function call(headers: Record<string, string>, url = "/api/v1/key") {
  const response = await http.inject({ method: "GET", url, headers });
  const body: unknown = response.json();
  return {
    status: response.statusCode,
    headers: response.headers,
    body: body as Record<string, unknown>,
  };
}

function reasonOf(body: Record<string, unknown>): unknown {
  return (body["error"] as Record<string, unknown> | undefined)?.["reason"];
}

await test("200: a key tells its client domain and environment", async () => {
  const { key } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  assert.match(key, /^svc_live_/);
  const { status, body, headers } = await call({ authorization: key });
  assert.equal(status, 200);
  assert.deepEqual(body, {
    clientDomainId: live.id,
    organizationId,
    domain: "localhost:3000",
    livemode: true,
    verified: true,
  });
  assert.equal(headers["cache-control"], "no-store");
});

await test("200: a sandbox key says so, and that its domain is not proved yet", async () => {
  const { key } = await createApiKey(ctx, { clientDomainId: sandbox.id, name: "tests" }, "cli");
  assert.match(key, /^svc_test_/);
  const { body } = await call({ authorization: key });
  assert.equal(body["livemode"], false);
  assert.equal(body["verified"], false);
});

await test("401: a call without the header, or with an empty one, is told apikey_missing", async () => {
  for (const headers of [{}, { authorization: "" }]) {
    const { status, body } = await call(headers);
    assert.equal(status, 401);
    assert.equal(reasonOf(body), "apikey_missing");
  }
});

await test("401: a key counts by every byte of its MAC", async () => {
  const { id, key } = await createApiKey(ctx, { clientDomainId: live.id, name: "mac" }, "cli");
  for (const at of [0, 8, 16, 31]) {
    const flip = async (): Promise<unknown> =>
      ctx.db.query({
        name: "",
        text: "update api_key set mac = set_byte(mac, $2, get_byte(mac, $2) # 1) where id = $1",
        values: [id, at],
      });
    await flip();
    await using lookup = await openApiKeys(ctx);
    await assert.rejects(lookup.authenticate(key), refusedWith("apikey_invalid"), `byte ${at}`);
    await flip();
  }
  await using lookup = await openApiKeys(ctx);
  assert.equal((await lookup.authenticate(key)).id, id);
});

await test("401: a key behind Bearer, damaged, foreign, of another environment or kind is told apikey_invalid", async () => {
  const { key } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  const management = await createManagementKey(ctx, { organizationId, name: "dashboard" }, "cli");
  const forged = makeApiKey("live", randomInt);
  for (const authorization of [
    `Bearer ${key}`,
    `Basic ${Buffer.from(`${key}:`).toString("base64")}`,
    key.slice(0, -1),
    key.replace("svc_live_", "svc_test_"),
    forged.text,
    management.key,
    "x".repeat(5_000),
  ]) {
    const { status, body } = await call({ authorization });
    assert.equal(status, 401);
    assert.equal(reasonOf(body), "apikey_invalid");
  }
});

await test("a right id with another secret is refused although its checksum fits", async () => {
  const { key, id } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  const ids = Array.from(id, (character) =>
    "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz".indexOf(character),
  );
  const forged = makeApiKey("live", (bound) => ids.shift() ?? randomInt(bound));
  assert.equal(forged.id, id);
  await assert.rejects(apiKeys.authenticate(forged.text), refusedWith("apikey_invalid"));
  assert.equal((await apiKeys.authenticate(key)).id, id);
  // Its row is cached now, with the text that was found genuine.
  await assert.rejects(apiKeys.authenticate(forged.text), refusedWith("apikey_invalid"));
  assert.equal((await apiKeys.authenticate(key)).id, id);
});

await test("a key of another installation is unknown, also when its row was copied here", async () => {
  await using elsewhere = await openTestDatabase();
  await using other = await openContext(parseConfig({ ...settings, DATABASE_URL: elsewhere.url }));
  const organization = await createOrganization(other, { name: "Example AG" }, "cli");
  const theirs = await createManagementKey(
    other,
    { organizationId: organization.id, name: "x" },
    "cli",
  );
  const [row] = await other.db.query<{ mac: Buffer }>({
    name: "",
    text: "select mac from api_key",
    values: [],
  });
  await ctx.db.query({
    name: "",
    text: "insert into api_key (id, organization_id, name, mac, created_at) values ($1, $2, 'x', $3, 0)",
    values: [theirs.id, organizationId, row?.mac],
  });
  await assert.rejects(apiKeys.authenticateManagement(theirs.key), refusedWith("apikey_invalid"));
});

await test("a key in the URL is refused, even beside a good one in the header", async () => {
  const { key } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  for (const url of [
    `/api/v1/key?authorization=${key}`,
    `/api/v1/key?a=1&api_key=${key.slice(0, 20)}`,
    `/api/v1/key?k=${key.replaceAll("_", "%5F")}`,
  ]) {
    const { status, body } = await call({ authorization: key }, url);
    assert.equal(status, 401);
    assert.equal(reasonOf(body), "apikey_invalid");
  }
});

await test("a revoked key is refused at once", async () => {
  const { key, id } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  assert.equal((await call({ authorization: key })).status, 200);
  const { promise, resolve } = Promise.withResolvers<void>();
  const unsubscribe = await ctx.notifications.subscribe("api-key", () => resolve());
  await revokeApiKey(ctx, id, "cli");
  await promise;
  unsubscribe();
  assert.equal((await call({ authorization: key })).status, 401);
  await assert.rejects(revokeApiKey(ctx, id, "cli"), refusedWith("apikey_not_found"));
});

await test("a known key costs no database call", async () => {
  const { key } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  let calls = 0;
  const query: Db["query"] = async (statement) => {
    calls += 1;
    return ctx.db.query(statement);
  };
  await using lookup = await openApiKeys({ ...ctx, db: { ...ctx.db, query } });
  for (let times = 0; times < 20; times += 1) await lookup.authenticate(key);
  assert.equal(calls, 1);
});

await test("several keys of a domain are live together, and the list shows names and last use, never a key", async () => {
  const { id } = await createOrganization(ctx, { name: "Several AG" }, "cli");
  const domain = await createDomain(
    ctx,
    { organizationId: id, domain: "localhost", environment: "live" },
    "cli",
  );
  const made = await Promise.all(
    ["one", "two"].map(async (name) =>
      createApiKey(ctx, { clientDomainId: domain.id, name }, "cli"),
    ),
  );
  await using lookup = await openApiKeys(ctx);
  for (const { key } of made) await lookup.authenticate(key);
  await lookup[Symbol.asyncDispose]();
  const listed = await listApiKeys(ctx, id);
  assert.deepEqual(listed.map((each) => each.name).toSorted(), ["one", "two"]);
  assert.ok(listed.every((each) => each.lastUsedAt !== null));
  assert.ok(made.every(({ key }) => !JSON.stringify(listed).includes(key)));
});

await test("a management key names its organization and no domain", async () => {
  const { key } = await createManagementKey(ctx, { organizationId, name: "dashboard" }, "cli");
  assert.match(key, /^svc_mgmt_/);
  assert.equal((await apiKeys.authenticateManagement(key)).organizationId, organizationId);
  const { key: other } = await createApiKey(ctx, { clientDomainId: live.id, name: "x" }, "cli");
  await assert.rejects(apiKeys.authenticateManagement(other), refusedWith("apikey_invalid"));
});

await test("no answer of the API carries a CORS header, asked by an origin or not", async () => {
  const { key } = await createApiKey(ctx, { clientDomainId: live.id, name: "backend" }, "cli");
  for (const headers of [{ authorization: key }, {}]) {
    const answer = await call({ ...headers, origin: "http://localhost:3000" });
    assert.deepEqual(
      Object.keys(answer.headers).filter((name) => name.startsWith("access-control")),
      [],
    );
  }
  const preflight = await http.inject({
    method: "OPTIONS",
    url: "/api/v1/key",
    headers: { origin: "http://localhost:3000", "access-control-request-method": "GET" },
  });
  assert.equal(preflight.statusCode, 405);
  assert.equal(preflight.headers["access-control-allow-origin"], undefined);
});

/** However long a test takes, no bucket refills meanwhile. */
function standingClock(): Pick<Clock, "now" | "nowMs"> {
  const nowMs = ctx.clock.nowMs();
  return { now: () => Math.floor(nowMs / 1000), nowMs: () => nowMs };
}

await test("429: a key that reads too fast is told when to come back, another key is not", async () => {
  const config = { ...ctx.config, readsPerSecond: 1 };
  const limits = createRateLimiter({ ...ctx, clock: standingClock() }, { limitLoopback: true });
  await using slow = createHttp(ctx);
  await accountRoutes({ ...ctx, config, limits, apiKeys }, slow);
  const { key } = await createApiKey(ctx, { clientDomainId: live.id, name: "fast" }, "cli");
  const ask = async (authorization: string) =>
    slow.inject({ method: "GET", url: "/api/v1/key", headers: { authorization } });
  const answers = [];
  for (let times = 0; times < 6; times += 1) answers.push(await ask(key));
  assert.equal(answers[0]?.statusCode, 200);
  assert.ok(answers[0]?.headers["ratelimit"]);
  const refused = answers.at(-1);
  assert.equal(refused?.statusCode, 429);
  assert.ok(Number(refused?.headers["retry-after"]) >= 1);
  const { key: other } = await createApiKey(ctx, { clientDomainId: live.id, name: "slow" }, "cli");
  assert.equal((await ask(other)).statusCode, 200);
});

await test("what a key creates and what it reads is counted apart", async () => {
  const config = { ...ctx.config, readsPerSecond: 1, createsPerSecond: 1 };
  const limits = createRateLimiter({ ...ctx, clock: standingClock() }, { limitLoopback: true });
  await using slow = createHttp(ctx);
  requireApiKey({ ...ctx, config, limits, apiKeys }, slow);
  slow.get("/api/things", () => []);
  slow.post("/api/things", () => ({}));
  slow.post("/api/things/search", { config: { onlyReads: true } }, () => []);
  await slow.ready();
  const given = { clientDomainId: live.id, name: "both" };
  const { key } = await createApiKey(ctx, given, "cli");
  const ask = async (method: "GET" | "POST", url = "/api/things"): Promise<number> =>
    (await slow.inject({ method, url, headers: { authorization: key } })).statusCode;
  while ((await ask("GET")) === 200);
  assert.deepEqual(
    [await ask("GET"), await ask("POST", "/api/things/search"), await ask("POST")],
    [429, 429, 200],
  );
});

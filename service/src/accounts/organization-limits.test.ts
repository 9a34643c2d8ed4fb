import assert from "node:assert/strict";
import { test } from "node:test";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { openContext } from "../compose.ts";
import { parseConfig } from "../platform/config/config.ts";
import { createHttp } from "../platform/http/http.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import {
  accountRoutes,
  createApiKey,
  createClient,
  createDomain,
  createOrganization,
  openApiKeys,
  openClients,
  setLimits,
} from "./index.ts";
import { lockLimits, saveLimits } from "./organization-limits-store.ts";

const settings = { MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent", LIMIT_READS_PER_SECOND: "1" };

await using database = await openTestDatabase();
await using ctx = await openContext(parseConfig({ ...settings, DATABASE_URL: database.url }));
await using apiKeys = await openApiKeys(ctx);
await using clients = await openClients(ctx);
await using http = createHttp(ctx);
await accountRoutes({ ...ctx, apiKeys }, http);

async function openOrganization() {
  const { id: organizationId } = await createOrganization(ctx, { name: "Example AG" }, "cli");
  const site = { organizationId, domain: "localhost", environment: "live" };
  const { id: clientDomainId } = await createDomain(ctx, site, "cli");
  const { key } = await createApiKey(ctx, { clientDomainId, name: "backend" }, "cli");
  const given = { clientDomainId, name: "Shop", authenticationMethod: "none" } as const;
  const redirectUris = ["http://localhost/callback"];
  const { client } = await createClient(ctx, { ...given, redirectUris }, "cli");
  return { organizationId, key, clientId: client.id };
}

/** From loopback. */
const read = async (authorization: string) =>
  http.inject({ method: "GET", url: "/api/v1/key", headers: { authorization } });

/** How many reads are let through at once. */
async function burstOf(authorization: string): Promise<string> {
  const { headers } = await read(authorization);
  return String(headers["ratelimit-policy"]);
}

const none = { readsPerSecond: null, createsPerSecond: null, loginsPerClientMinute: null };

/** Processes hear of a change by a notification. */
async function until(isSo: () => Promise<boolean>): Promise<void> {
  while (!(await isSo())) await new Promise((resolve) => void setImmediate(resolve));
}

await test("an organization's own limits count for its keys and clients at once, and for no other's", async () => {
  const [own, other] = [await openOrganization(), await openOrganization()];
  const { organizationId } = own;
  assert.equal(await burstOf(own.key), '"default";q=4;w=4');
  assert.equal((await clients.find(own.clientId))?.loginsPerClientMinute, null);
  const changes = { readsPerSecond: 50, loginsPerClientMinute: 7 };
  assert.deepEqual(await setLimits(ctx, { organizationId, changes }, "cli"), {
    ...none,
    ...changes,
  });
  await until(async () => (await burstOf(own.key)) === '"default";q=200;w=4');
  await until(async () => (await clients.find(own.clientId))?.loginsPerClientMinute === 7);
  assert.equal(await burstOf(other.key), '"default";q=4;w=4');
  assert.equal((await clients.find(other.clientId))?.loginsPerClientMinute, null);
  const rest = { organizationId, changes: { readsPerSecond: null } };
  assert.deepEqual(await setLimits(ctx, rest, "cli"), { ...none, loginsPerClientMinute: 7 });
  await until(async () => (await burstOf(own.key)) === '"default";q=4;w=4');
  assert.deepEqual(await setLimits(ctx, { organizationId, changes: {} }, "cli"), {
    ...none,
    loginsPerClientMinute: 7,
  });
});

await test("an organization's own limit counts on loopback too, which dev spares the limits of the settings", async () => {
  const { organizationId, key } = await openOrganization();
  const readMany = async () =>
    Promise.all(Array.from({ length: 20 }, async () => (await read(key)).statusCode));
  assert.deepEqual(new Set(await readMany()), new Set([200]));
  await setLimits(ctx, { organizationId, changes: { readsPerSecond: 2 } }, "cli");
  await until(async () => (await burstOf(key)) === '"default";q=8;w=4');
  assert.ok((await readMany()).includes(429));
});

await test("of two changes of an organization's limits at once neither takes the other one back", async () => {
  const { organizationId } = await openOrganization();
  let other: Promise<unknown> = Promise.resolve();
  await ctx.db.transaction(async (tx) => {
    const known = await lockLimits(tx, organizationId);
    assert.deepEqual(known, none);
    other = setLimits(ctx, { organizationId, changes: { readsPerSecond: 50 } }, "cli");
    await untilBlocked(ctx.db, tx, [other]);
    await saveLimits(tx, organizationId, { ...none, createsPerSecond: 5 });
  });
  assert.deepEqual(await other, { ...none, readsPerSecond: 50, createsPerSecond: 5 });
});

await test("limits go as far as the settings, and only an organization has any", async () => {
  const { organizationId } = await openOrganization();
  const set = async (changes: object, id = organizationId) =>
    setLimits(ctx, { organizationId: id, changes }, "cli");
  await set({ readsPerSecond: 100_000, createsPerSecond: 1, loginsPerClientMinute: 1_000_000 });
  for (const changes of [
    { readsPerSecond: 0 },
    { readsPerSecond: 100_001 },
    { createsPerSecond: 1.5 },
    { loginsPerClientMinute: 1_000_001 },
  ])
    await assert.rejects(set(changes), { reason: "invalid_request" });
  for (const id of ["x", "0199c3a0-5c1e-7d4f-9a61-2b7c8e5d4f10"])
    await assert.rejects(set({}, id), { reason: "organization_not_found" });
});

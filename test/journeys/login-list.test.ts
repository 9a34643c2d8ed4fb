import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { disableClient } from "../../service/src/accounts/index.ts";
import type { Jar } from "../cookie-jar.ts";
import { authorizationUrl, basicOf, logIn, makePkce, postToken } from "../login-flow.ts";
import { until } from "../patience.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

type Headers = Awaited<ReturnType<typeof openWalletSession>>;
type Listed = { id: string; clientName: string; at: number; acr: string };

async function listed(headers: Headers): Promise<Listed[]> {
  const response = await fetch(`${world.baseUrl}/w/logins`, { headers });
  assert.equal(response.status, 200);
  return ((await response.json()) as { items: Listed[] }).items;
}

async function end(headers: Headers, id: string | undefined): Promise<number> {
  const path = `${world.baseUrl}/w/logins/${id}/end`;
  return (await fetch(path, { method: "POST", headers })).status;
}

/** What the browser gets without the wallet: "code", or the error. */
async function silently(jar: Jar): Promise<string> {
  const changed = { scope: "openid", prompt: "none" };
  const url = authorizationUrl(world.baseUrl, world.client, makePkce(), changed);
  const location = new URL((await jar.fetch(url)).headers.get("location") ?? "");
  return location.searchParams.has("code") ? "code" : (location.searchParams.get("error") ?? "");
}

const changed = { scope: "openid" };

test("a browser that is still logged in is listed when its tokens are over, and ended", async () => {
  const [alice, bob] = [newIdentity(), newIdentity()];
  const { page } = await logIn(world.baseUrl, world.client, alice, { changed });
  const [token] = await listed(await openWalletSession(world.baseUrl, alice));
  await world.advance(3601);
  const wallet = await openWalletSession(world.baseUrl, alice);
  const [session, ...more] = await listed(wallet);
  assert.deepEqual(more, []);
  assert.notEqual(session?.id, token?.id);
  assert.ok(session && token && session.at <= token.at, "a session begins before its tokens");
  assert.deepEqual({ ...session, id: "", at: 0 }, { ...token, id: "", at: 0 });
  assert.equal(await silently(page.jar), "code");
  const stranger = await openWalletSession(world.baseUrl, bob);
  assert.equal(await end(stranger, session?.id), 404);
  assert.equal(await end(wallet, session?.id), 200);
  assert.equal(await silently(page.jar), "login_required");
  assert.deepEqual(await listed(wallet), []);
  assert.equal(await end(wallet, session?.id), 200, "a repeat");
  assert.equal(await end(stranger, session?.id), 404);
});

test("tokens that were not refreshed for 30 days are no login any more", async () => {
  const dora = newIdentity();
  const { tokens } = await logIn(world.baseUrl, world.client, dora);
  await world.advance(20 * 86_400);
  const parameters = { grant_type: "refresh_token", refresh_token: tokens.refresh_token ?? "" };
  const refreshed = await postToken(world.baseUrl, world.client, parameters);
  assert.equal(refreshed.status, 200);
  await world.advance(30 * 86_400 - 600);
  assert.equal((await listed(await openWalletSession(world.baseUrl, dora))).length, 1);
  await world.advance(600);
  assert.deepEqual(await listed(await openWalletSession(world.baseUrl, dora)), []);
});

test("a login at a client that was disabled is listed by its name, and ended", async () => {
  const grace = newIdentity();
  const client = await world.addClient({ name: "Closed shop" });
  await logIn(world.baseUrl, client, grace);
  await disableClient(world.ctx, client.id, "test");
  const headers = await openWalletSession(world.baseUrl, grace);
  const [login] = await until("the client is known to be disabled", async () => {
    const found = await listed(headers);
    return found.some((each) => "domain" in each) ? null : found;
  });
  assert.equal(login?.clientName, "Closed shop");
  assert.equal(await end(headers, login.id), 200);
  assert.deepEqual(await listed(headers), []);
});

test("a session that is over is no login any more", async () => {
  const carol = newIdentity();
  await logIn(world.baseUrl, world.client, carol, { changed });
  await world.advance(12 * 3600 + 1);
  assert.deepEqual(await listed(await openWalletSession(world.baseUrl, carol)), []);
});

test("logins are listed in pages, the newest first", async () => {
  const erin = newIdentity();
  for (let count = 1; count <= 5; count += 1) {
    await logIn(world.baseUrl, world.client, erin);
    await world.advance(count % 2);
  }
  const headers = await openWalletSession(world.baseUrl, erin);
  const whole = await listed(headers);
  assert.equal(whole.length, 5);
  assert.deepEqual(
    whole.map(({ at }) => at),
    whole.map(({ at }) => at).toSorted((one, other) => other - one),
  );
  const pages: Listed[][] = [];
  let query = "?limit=2";
  while (query !== "") {
    const response = await fetch(`${world.baseUrl}/w/logins${query}`, { headers });
    const page = (await response.json()) as { items: Listed[]; nextCursor?: string };
    pages.push(page.items);
    query = page.nextCursor === undefined ? "" : `?limit=2&cursor=${page.nextCursor}`;
  }
  assert.deepEqual(
    pages.map(({ length }) => length),
    [2, 2, 1],
  );
  assert.deepEqual(pages.flat(), whole);
  const other = await fetch(`${world.baseUrl}/w/logins?cursor=1.2`, { headers });
  assert.equal(other.status, 400);
});

test("the end of a login by its user is on record, once", async () => {
  const frank = newIdentity();
  await logIn(world.baseUrl, world.client, frank);
  const wallet = await openWalletSession(world.baseUrl, frank);
  const [login] = await listed(wallet);
  for (let times = 0; times < 2; times += 1) assert.equal(await end(wallet, login?.id), 200);
  const text = "select actor, subject from audit_entry where action = 'login.end' and subject = $1";
  const entries = await world.ctx.db.query({ name: "", text, values: [login?.id] });
  assert.deepEqual(entries, [{ actor: frank.address, subject: login?.id }]);
  assert.equal(await end(wallet, randomUUID()), 404, "not every login that ever was has ended");
});

test("ending a login whose tokens alone have ended is not confirmed while its browser is still logged in", async () => {
  const { client, baseUrl } = world;
  const heidi = newIdentity();
  const { tokens } = await logIn(baseUrl, client, heidi);
  const wallet = await openWalletSession(baseUrl, heidi);
  const [login] = await listed(wallet);
  const headers = { authorization: basicOf(client) };
  const body = new URLSearchParams({ token: tokens.access_token });
  assert.equal(
    (await fetch(`${baseUrl}/oauth2/revoke`, { method: "POST", headers, body })).status,
    200,
  );
  const [session] = await listed(wallet);
  assert.notEqual(session?.id, login?.id);
  assert.equal(await end(wallet, login?.id), 404);
  assert.equal(await end(wallet, session?.id), 200);
  assert.equal(await end(wallet, login?.id), 200);
});

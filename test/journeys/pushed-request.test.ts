// A page that was opened by a pushed request: the request is used up, and the page can be loaded again all the same.
import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { calculateJwkThumbprint, exportJWK, SignJWT } from "jose";
import { retentionJobs } from "../../service/src/login/retention.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openJar, type Jar } from "../cookie-jar.ts";
import {
  approveByQr,
  authorizationUrl,
  basicOf,
  finish,
  hooksOf,
  type LoginClient,
  makePkce,
  type OpenPage,
  redeem,
} from "../login-flow.ts";
import { newIdentity } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const pkce = makePkce();

interface Pushing {
  readonly dpop?: string;
  readonly changed?: Record<string, string>;
  /** More of the form, as sent. */
  readonly added?: string;
}

async function tryPush(
  client: LoginClient,
  { dpop, changed, added = "" }: Pushing = {},
): Promise<Response> {
  const { search } = new URL(authorizationUrl(world.baseUrl, client, pkce, changed));
  return fetch(`${world.baseUrl}/oauth2/par`, {
    method: "POST",
    headers: { authorization: basicOf(client), ...(dpop === undefined ? {} : { dpop }) },
    body: new URLSearchParams(`${search}${added}`),
  });
}

/** Pushes a request; answers the address that it opens at. */
async function push(client: LoginClient, more: Pushing = {}): Promise<string> {
  const response = await tryPush(client, more);
  assert.equal(response.status, 201, await response.clone().text());
  const { request_uri } = (await response.json()) as { request_uri: string };
  const query = new URLSearchParams({ client_id: client.id, request_uri });
  return `${world.baseUrl}/oauth2/auth?${query.toString()}`;
}

async function load(jar: Jar, url: string): Promise<OpenPage> {
  const response = await jar.fetch(url);
  const html = await response.text();
  assert.equal(response.status, 200, html);
  return Object.assign(hooksOf(html), { jar, html, pkce });
}

test("a page opened by a pushed request is loaded again as the same login, and ends in tokens", async () => {
  const url = await push(world.client);
  const jar = openJar();
  const first = await load(jar, url);
  const second = await load(jar, url);
  assert.equal(second.loginId, first.loginId);
  await world.advance(90);
  const later = await load(jar, url);
  assert.equal(later.loginId, first.loginId, "the request has expired, the login has not");
  await approveByQr(world.baseUrl, later, newIdentity());
  const location = await finish(world.baseUrl, later);
  const code = location.searchParams.get("code") ?? "";
  const redeemed = await redeem(world.baseUrl, world.client, { code, verifier: pkce.verifier });
  assert.equal(redeemed.status, 200);
});

test("a login that was started again is what a reload shows", async () => {
  const url = await push(world.client);
  const jar = openJar();
  const { loginId } = await load(jar, url);
  const again = await jar.fetch(`${world.baseUrl}/oauth2/login/${loginId}/restart`, {
    method: "POST",
    headers: { "sec-fetch-site": "same-origin" },
  });
  const location = again.headers.get("location") ?? "";
  assert.equal(again.status, 303);
  assert.equal(`/oauth2/login/${(await load(jar, url)).loginId}`, location);
});

test("a pushed request that was used opens nothing for anybody else", async () => {
  const url = await push(world.client);
  const jar = openJar();
  const { loginId } = await load(jar, url);
  const forged = new Map([[`svc_login_${loginId}`, `1.${"A".repeat(43)}`]]);
  const elsewhere = await load(openJar(), await push(world.client));
  const otherClient = new URL(url);
  otherClient.searchParams.set("client_id", (await world.addClient()).id);
  const others: [Jar, string][] = [
    [openJar(), url],
    [openJar(forged), url],
    [elsewhere.jar, url],
    [jar, otherClient.toString()],
  ];
  for (const [other, address] of others) {
    const response = await other.fetch(address);
    assert.equal(response.status, 400);
    assert.match(await response.text(), /used or expired/);
  }
});

test("another client opens nothing by a pushed request, and does not use it up", async () => {
  const other = await world.addClient();
  const url = await push(world.client);
  const foreign = new URL(url);
  foreign.searchParams.set("client_id", other.id);
  const refused = await fetch(foreign, { redirect: "manual" });
  assert.deepEqual([refused.status, refused.headers.get("location")], [400, null]);
  assert.match(await refused.text(), /unknown, used or expired/);
  await load(openJar(), url);
});

test("a pushed request waits for a minute, as its answer says", async () => {
  const { expires_in: seconds } = (await (await tryPush(world.client)).json()) as {
    expires_in: number;
  };
  assert.equal(seconds, 60);
  using _ = world.holdTime();
  const [inTime, late] = [await push(world.client), await push(world.client)];
  await world.advance(59);
  assert.equal((await openJar().fetch(inTime)).status, 200);
  await world.advance(1);
  assert.equal((await openJar().fetch(late)).status, 400);
});

test("a pushed request whose minute is over opens nothing, whether or not it was removed, and none is removed before", async () => {
  const { ctx } = world;
  const [late, inTime] = [await push(world.client), await push(world.client)];
  const id = new URL(late).searchParams.get("request_uri")?.split(":").at(-1) ?? "";
  await ctx.db.query(
    sql`update pushed_request set expires_at = ${ctx.clock.now()} where id = ${id}`,
  );
  assert.equal((await openJar().fetch(late)).status, 400);
  const job = retentionJobs(ctx).find(({ name }) => name === "pushed-requests");
  await job?.run(AbortSignal.any([]));
  assert.equal((await openJar().fetch(inTime)).status, 200);
});

test("a client that demands pushed requests is answered at its redirect URI where one was not pushed", async () => {
  const client = await world.addClient({ pushedRequestRequired: true });
  const direct = authorizationUrl(world.baseUrl, client, pkce, { scope: "unknown" });
  const { search } = new URL(direct);
  const form = { method: "POST", body: new URLSearchParams(search) };
  for (const response of [
    await openJar().fetch(direct),
    await openJar().fetch(`${world.baseUrl}/oauth2/auth`, form),
  ]) {
    assert.equal(response.status, 303);
    const location = new URL(response.headers.get("location") ?? "");
    assert.equal(`${location.origin}${location.pathname}`, client.redirectUri);
    const { error, state, iss } = Object.fromEntries(location.searchParams);
    const asked = new URL(direct).searchParams.get("state");
    assert.deepEqual(
      { error, state, iss },
      { error: "invalid_request", state: asked, iss: world.baseUrl },
    );
    assert.match(location.searchParams.get("error_description") ?? "", /request_uri is missing/);
  }
  const elsewhere = { redirect_uri: "https://evil.example/" };
  const page = await openJar().fetch(authorizationUrl(world.baseUrl, client, pkce, elsewhere));
  assert.equal(page.status, 400, "nothing is sent where the client does not live");
});

test("a client that demands pushed requests logs people in by them, and its sessions answer them alone", async () => {
  const client = await world.addClient({ pushedRequestRequired: true });
  const jar = openJar();
  const page = await load(jar, await push(client));
  await approveByQr(world.baseUrl, page, newIdentity());
  await finish(world.baseUrl, page);
  const answerTo = async (url: string): Promise<string[]> => {
    const response = await jar.fetch(url);
    return [...new URL(response.headers.get("location") ?? "").searchParams.keys()];
  };
  const silently = { prompt: "none" };
  const direct = authorizationUrl(world.baseUrl, client, pkce, silently);
  assert.ok((await answerTo(direct)).includes("error"));
  const url = await push(client, { changed: silently });
  assert.ok((await answerTo(url)).includes("code"));
  assert.equal((await jar.fetch(url)).status, 400, "used up");
});

test("a pushed request whose login does not begin is not used up, and opens that login when it is tried again", async (t) => {
  const jar = openJar();
  const opened = await load(jar, await push(world.client));
  await approveByQr(world.baseUrl, opened, newIdentity());
  await finish(world.baseUrl, opened);
  const page = await push(world.client);
  const silent = await push(world.client, { changed: { prompt: "none" } });
  const locationOf = async (url: string): Promise<string> =>
    (await jar.fetch(url)).headers.get("location") ?? "";
  const { db } = world.ctx;
  const transaction = db.transaction.bind(db);
  const failing = t.mock.method(db, "transaction", (async (work) =>
    transaction(async (tx) => {
      await work(tx);
      throw new Error("the process was killed");
    })) as typeof transaction);
  assert.equal((await jar.fetch(page)).status, 500);
  assert.match(await locationOf(silent), /error=server_error/);
  failing.mock.restore();
  assert.notEqual((await load(jar, page)).loginId, "");
  assert.match(await locationOf(silent), /[?&]code=/);
});

test("a request that names two pushed requests is refused and uses up neither", async () => {
  const [first, second] = [await push(world.client), await push(world.client)];
  const both = `${first}&request_uri=${new URL(second).searchParams.get("request_uri")}`;
  const response = await openJar().fetch(both);
  assert.equal(response.status, 400);
  assert.match(await response.text(), /request_uri must be given once/);
  for (const url of [first, second]) await load(openJar(), url);
});

test("a request_uri to be fetched is refused at the redirect URI, and on a page where that is not registered", async () => {
  const { client } = world;
  const fetched = { request_uri: "https://shop.example/request.jwt" };
  const ask = async (changed: Record<string, string>): Promise<Response> =>
    openJar().fetch(authorizationUrl(world.baseUrl, client, pkce, changed));
  const refused = await ask({ ...fetched, state: "s1" });
  const location = new URL(refused.headers.get("location") ?? "");
  const { searchParams } = location;
  assert.deepEqual(
    [refused.status, location.origin + location.pathname, searchParams.get("state")],
    [303, client.redirectUri, "s1"],
  );
  assert.equal(searchParams.get("error"), "request_uri_not_supported");
  const foreign = await ask({ ...fetched, redirect_uri: "https://evil.example/callback" });
  assert.deepEqual([foreign.status, foreign.headers.get("location")], [400, null]);
});

test("a client's credentials may be pushed only once, also beside the header", async () => {
  const twice = ["client_id", "client_secret", "client_assertion", "client_assertion_type"];
  for (const name of twice) {
    const response = await tryPush(world.client, { added: `&${name}=a&${name}=b` });
    const { error, error_description } = (await response.json()) as Record<string, string>;
    assert.deepEqual([response.status, error], [400, "invalid_request"], name);
    assert.equal(error_description, `${name} is given more than once`);
  }
});

const keys = generateKeyPairSync("ec", { namedCurve: "P-256" });
const jwk = await exportJWK(keys.publicKey);

async function proofFor(path: string, key = keys): Promise<string> {
  const given = { htm: "POST", htu: `${world.baseUrl}${path}`, jti: randomUUID() };
  return new SignJWT(given)
    .setProtectedHeader({ alg: "ES256", typ: "dpop+jwt", jwk: await exportJWK(key.publicKey) })
    .setIssuedAt(world.ctx.clock.now())
    .sign(key.privateKey);
}

/** Logs in by the page at this address; answers the code. */
async function codeOf(url: string): Promise<string> {
  const page = await load(openJar(), url);
  await approveByQr(world.baseUrl, page, newIdentity());
  return (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
}

test("a proof that is pushed along binds the code to its key", async () => {
  const url = await push(world.client, { dpop: await proofFor("/oauth2/par") });
  const form = {
    grant_type: "authorization_code",
    code: await codeOf(url),
    redirect_uri: world.client.redirectUri,
    code_verifier: pkce.verifier,
  };
  const redeemBy = async (dpop: string | null): Promise<[number, unknown]> => {
    const response = await fetch(`${world.baseUrl}/oauth2/token`, {
      method: "POST",
      headers: { authorization: basicOf(world.client), ...(dpop === null ? {} : { dpop }) },
      body: new URLSearchParams(form),
    });
    const body = (await response.json()) as { error?: string; token_type?: string };
    return [response.status, body.error ?? body.token_type];
  };
  const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
  assert.equal((await redeemBy(null))[0], 400);
  assert.equal((await redeemBy(await proofFor("/oauth2/token", stranger)))[0], 400);
  assert.deepEqual(await redeemBy(await proofFor("/oauth2/token")), [200, "DPoP"]);
});

test("a proof that is pushed along counts once, is for this address, and for the key that is named", async () => {
  const proof = await proofFor("/oauth2/par");
  const thumbprint = await calculateJwkThumbprint(jwk);
  await push(world.client, { dpop: proof, changed: { dpop_jkt: thumbprint } });
  const other = "A".repeat(43);
  const refused: Pushing[] = [
    { dpop: proof },
    { dpop: "no proof" },
    { dpop: await proofFor("/oauth2/token") },
    { dpop: await proofFor("/oauth2/par"), changed: { dpop_jkt: other } },
  ];
  for (const pushing of refused) {
    const response = await tryPush(world.client, pushing);
    const { error } = (await response.json()) as { error: string };
    assert.deepEqual([response.status, error], [400, "invalid_dpop_proof"]);
  }
});

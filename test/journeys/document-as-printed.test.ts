// The login chapter of the service document, followed word by word.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createRemoteJWKSet, decodeJwt, jwtVerify } from "jose";
import {
  approveByQr,
  finish,
  hooksOf,
  logIn,
  makePkce,
  openPage,
  type OpenPage,
  postToken,
  redeem,
  statusOf,
  type Tokens,
} from "../login-flow.ts";
import { openJar } from "../cookie-jar.ts";
import { approve, claim, newIdentity, scan } from "../raw-wallet.ts";
import { apiAudience, openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const printedScope = "openid offline offline_access";

test("the authorization request as printed ends in the token response as printed", async () => {
  const { client, baseUrl } = world;
  const { verifier, challenge } = makePkce();
  const query = new URLSearchParams({
    client_id: client.id,
    redirect_uri: client.redirectUri,
    response_type: "code",
    scope: printedScope,
    state: "random-value",
    code_challenge: challenge,
    code_challenge_method: "S256",
    audience: apiAudience,
    prompt: "consent",
    access_type: "offline",
  });
  const jar = openJar();
  const shown = await jar.fetch(`${baseUrl}/oauth2/auth?${query.toString()}`);
  assert.equal(shown.status, 200);
  const html = await shown.text();
  const page = Object.assign(hooksOf(html), { jar, html, pkce: { verifier, challenge } });
  const alice = newIdentity();
  await approveByQr(baseUrl, page, alice);

  const back = await finish(baseUrl, page);
  assert.equal(`${back.origin}${back.pathname}`, client.redirectUri);
  assert.equal(back.searchParams.get("state"), "random-value");
  assert.equal(back.searchParams.get("iss"), baseUrl);

  const response = await fetch(`${baseUrl}/oauth2/token`, {
    method: "POST",
    headers: {
      authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString("base64")}`,
    },
    body: new URLSearchParams({
      grant_type: "authorization_code",
      code: back.searchParams.get("code") ?? "",
      redirect_uri: client.redirectUri,
      code_verifier: verifier,
    }),
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type") ?? "", /^application\/json/);
  const tokens = (await response.json()) as Record<string, unknown>;
  assert.deepEqual(Object.keys(tokens).toSorted(), [
    "access_token",
    "expires_in",
    "id_token",
    "refresh_token",
    "scope",
    "token_type",
  ]);
  assert.equal(tokens["token_type"], "bearer");
  assert.equal(tokens["expires_in"], 3600);
  assert.equal(tokens["scope"], printedScope);
  assert.equal(typeof tokens["refresh_token"], "string");
  const { sub } = decodeJwt(String(tokens["id_token"]));
  assert.equal(sub, `svcid:${alice.address}`);
  assert.match(sub ?? "", /^svcid:0x[0-9a-f]{40}$/);
});

test("the three verification steps of the document accept both tokens", async () => {
  const alice = newIdentity();
  const { tokens } = await logIn(world.baseUrl, world.client, alice, {
    changed: { audience: apiAudience, nonce: "n-1" },
  });
  const discovery = (await (
    await fetch(`${world.baseUrl}/.well-known/openid-configuration`)
  ).json()) as { issuer: string; jwks_uri: string };
  assert.equal(discovery.jwks_uri, `${world.baseUrl}/.well-known/jwks.json`);
  const keys = createRemoteJWKSet(new URL(discovery.jwks_uri));
  const { issuer } = discovery;
  for (const [token, typ, audience] of [
    [tokens.id_token, "JWT", world.client.id],
    [tokens.access_token, "at+jwt", apiAudience],
  ] as const) {
    const { payload } = await jwtVerify(token, keys, { issuer, typ, audience });
    assert.equal(payload.sub?.replace("svcid:", ""), alice.address);
  }
  assert.equal(decodeJwt(tokens.id_token)["nonce"], "n-1");
  assert.deepEqual(decodeJwt(tokens.access_token).aud, [apiAudience], "nothing that was not asked");
});

test("userinfo answers a token whose audience is the merchant's API", async () => {
  const alice = newIdentity();
  const { tokens } = await logIn(world.baseUrl, world.client, alice, {
    changed: { audience: apiAudience },
  });
  const response = await fetch(`${world.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  });
  assert.equal(response.status, 200);
  const { sub } = (await response.json()) as { sub: string };
  assert.equal(sub, `svcid:${alice.address}`);
});

test("without offline_access and offline there is no refresh token", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity(), {
    changed: { scope: "openid", audience: apiAudience },
  });
  assert.equal(tokens.refresh_token, undefined);
  assert.equal(tokens.token_type, "bearer");
});

test("a browser-only client exchanges its code with PKCE alone", async () => {
  const client = await world.addClient({ authenticationMethod: "none" });
  assert.equal(client.secret, undefined);
  const alice = newIdentity();
  const { tokens } = await logIn(world.baseUrl, client, alice);
  assert.equal(decodeJwt(tokens.id_token).sub, `svcid:${alice.address}`);
});

/** Background jobs add statements of their own now and then: the minimum of this many runs is the operation's own. */
const runs = 40;

async function counted<T>(work: () => Promise<T>): Promise<{ calls: number; result: T }> {
  const callsBefore = world.ctx.db.callsTotal;
  const result = await work();
  return { calls: world.ctx.db.callsTotal - callsBefore, result };
}

/** Opens the page's status stream. @returns its events, in order */
async function openStream(page: OpenPage): Promise<AsyncIterator<Record<string, unknown>>> {
  const response = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/events`);
  assert.ok(response.body);
  return eventsOf(response.body.pipeThrough(new TextDecoderStream()));
}

async function* eventsOf(chunks: ReadableStream<string>): AsyncGenerator<Record<string, unknown>> {
  for await (const chunk of chunks) {
    const data = /^data: (.+)$/m.exec(chunk)?.[1];
    if (data !== undefined) yield JSON.parse(data) as Record<string, unknown>;
  }
}

/** Skips to the next event of this kind, because a state may be told twice. */
async function eventOf(
  events: AsyncIterator<Record<string, unknown>>,
  kind: string,
): Promise<Record<string, unknown>> {
  for (;;) {
    const { done, value } = await events.next();
    assert.ok(done !== true, `the stream ended before ${kind}`);
    if (value["kind"] === kind) return value;
  }
}

/** Everything that browser, wallet and merchant do in a login. */
async function logInOverStream(): Promise<Tokens> {
  const { baseUrl, client } = world;
  const page = await openPage(baseUrl, client, { changed: { audience: apiAudience } });
  const events = await openStream(page);
  await eventOf(events, "waiting");
  const claimed = await claim(scan(page.qr), newIdentity());
  const { digits } = await eventOf(events, "claimed");
  await approve(claimed, String(digits));
  assert.deepEqual(await eventOf(events, "approved"), { kind: "approved" });
  await events.return?.();
  const code = (await finish(baseUrl, page)).searchParams.get("code") ?? "";
  const answer = await redeem(baseUrl, client, { code, verifier: page.pkce.verifier });
  assert.equal(answer.status, 200);
  return (await answer.json()) as Tokens;
}

async function countWallet(): Promise<number> {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await counted(async () => claim(scan(page.qr), newIdentity()));
  const { digits } = await statusOf(world.baseUrl, page);
  const approved = await counted(async () => approve(claimed.result, String(digits)));
  assert.equal(approved.result.status, 200);
  return claimed.calls + approved.calls;
}

test("a login costs five database calls from page to tokens, and two for the wallet", async () => {
  let [walletCalls, browserCalls] = [Infinity, Infinity];
  for (let run = 0; run < runs && (walletCalls > 2 || browserCalls > 5); run += 1) {
    walletCalls = Math.min(walletCalls, await countWallet());
    const { calls } = await counted(logInOverStream);
    browserCalls = Math.min(browserCalls, calls - walletCalls);
  }
  assert.ok(walletCalls <= 2, `${walletCalls} calls for claim and approval`);
  assert.ok(browserCalls <= 5, `${browserCalls} calls from the page to the tokens`);
});

test("refresh, introspection and userinfo cost one database call each", async () => {
  const { baseUrl, client } = world;
  let tokens = await logInOverStream();
  const basic = {
    authorization: `Basic ${Buffer.from(`${client.id}:${client.secret}`).toString("base64")}`,
  };
  const operations: Record<string, () => Promise<Response>> = {
    refresh: async () =>
      postToken(baseUrl, client, {
        grant_type: "refresh_token",
        refresh_token: tokens.refresh_token ?? "",
      }),
    introspection: async () =>
      fetch(`${baseUrl}/oauth2/introspect`, {
        method: "POST",
        headers: basic,
        body: new URLSearchParams({ token: tokens.access_token }),
      }),
    userinfo: async () =>
      fetch(`${baseUrl}/userinfo`, {
        headers: { authorization: `Bearer ${tokens.access_token}` },
      }),
  };
  for (const [name, operation] of Object.entries(operations)) {
    const counts = [];
    for (let run = 0; run < runs; run += 1) {
      const { calls, result } = await counted(operation);
      assert.equal(result.status, 200, name);
      if (name === "refresh") tokens = (await result.json()) as Tokens;
      counts.push(calls);
    }
    assert.equal(Math.min(...counts), 1, name);
  }
});

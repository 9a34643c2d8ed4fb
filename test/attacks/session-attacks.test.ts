// What a browser session may answer in the wallet's place, and what it never may.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type Address, checksumAddress } from "@svc/protocol";
import { decodeJwt } from "jose";
import { authorizationFaults } from "../../service/src/login/authorization/authorization-request.ts";
import { purgeLogins } from "../../service/src/login/retention.ts";
import { type Jar, openJar } from "../cookie-jar.ts";
import {
  approveByQr,
  authorizationUrl,
  finish,
  hooksOf,
  type LoginClient,
  logIn,
  openPage,
  makePkce,
  postToken,
  redeem,
  statusOf,
  type Tokens,
} from "../login-flow.ts";
import { newIdentity, sameDeviceReturn, scan } from "../raw-wallet.ts";
import { apiAudience, openWorld, type World } from "../world.ts";
import { untilBlocked, untilWritersEnd } from "../lock-waits.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

type Changed = Record<string, string | undefined>;

/** Where an authorization request without a page leads; its `state` and `iss` are checked on the way. */
async function ask(jar: Jar, changed: Changed, client: LoginClient = world.client): Promise<URL> {
  const url = authorizationUrl(world.baseUrl, client, makePkce(), { prompt: "none", ...changed });
  const response = await jar.fetch(url);
  assert.equal(response.status, 303, await response.text());
  const location = new URL(response.headers.get("location") ?? "");
  assert.equal(location.origin + location.pathname, client.redirectUri);
  assert.equal(location.searchParams.get("state"), "state-of-the-browser");
  assert.equal(location.searchParams.get("iss"), world.baseUrl);
  return location;
}

async function faultOf(jar: Jar, changed: Changed, client?: LoginClient): Promise<string | null> {
  const { searchParams } = await ask(jar, changed, client);
  assert.equal(searchParams.has("code"), !searchParams.has("error"));
  return searchParams.get("error");
}

test("a client that asks without a page learns nothing of a login to others: the same answer, after as many database calls", async () => {
  const jar = openJar();
  await logIn(world.baseUrl, world.client, newIdentity(), { jar });
  const other = await world.addClient();
  const url = authorizationUrl(world.baseUrl, other, makePkce(), { prompt: "none" });
  const found: { answer: unknown; calls: number }[] = [];
  for (const browser of [openJar(), jar]) {
    let [calls, answer] = [Infinity, null as unknown];
    // Jobs call the database too, so the minimum counts.
    for (let run = 0; run < 20; run += 1) {
      const earlier = world.ctx.db.callsTotal;
      const { status, headers } = await browser.copy().fetch(url);
      calls = Math.min(calls, world.ctx.db.callsTotal - earlier);
      const varying = new Set(["date", "x-request-id"]);
      answer = [status, [...headers].filter(([name]) => !varying.has(name))];
    }
    found.push({ answer, calls });
  }
  assert.deepEqual(found[0], found[1]);
});

test("a session answers for exactly what was approved in it, and for nothing else", async () => {
  const jar = openJar();
  const identity = newIdentity();
  const { tokens } = await logIn(world.baseUrl, world.client, identity, { jar });
  const stranger = await logIn(world.baseUrl, world.client, newIdentity());
  const other = await world.addClient();
  assert.equal(await faultOf(jar, {}), null);
  assert.equal(await faultOf(jar, { id_token_hint: tokens.id_token }), null);
  assert.equal(await faultOf(jar, { login_hint: `svcid:${identity.address}` }), null);
  assert.equal(await faultOf(jar, { login_hint: "somebody@example.com" }), null);
  assert.equal(await faultOf(jar, { acr_values: "urn:svc:acr:qr" }), null);
  for (const changed of [
    { scope: "openid" },
    { scope: "openid offline" },
    { audience: apiAudience },
    { max_age: "0" },
    { acr_values: "urn:svc:acr:same-device" },
    { id_token_hint: stranger.tokens.id_token },
    { login_hint: `svcid:${newIdentity().address}` },
  ])
    assert.equal(await faultOf(jar, changed), "login_required", JSON.stringify(changed));
  assert.equal(await faultOf(jar, {}, other), "login_required");
  assert.equal(await faultOf(openJar(), {}), "login_required");
  await world.advance(100);
  assert.equal(await faultOf(jar, { max_age: "99" }), "login_required");
  assert.equal(await faultOf(jar, { max_age: "200" }), null);
});

async function logInOnSameDevice(
  client: LoginClient,
  identity: ReturnType<typeof newIdentity>,
  jar: Jar,
): Promise<void> {
  const page = await openPage(world.baseUrl, client, { jar });
  const returned = await jar.fetch(sameDeviceReturn(scan(page.sameDevice), identity));
  const { headers } = await jar.fetch(returned.headers.get("location") ?? "");
  assert.ok(new URL(headers.get("location") ?? "").searchParams.get("code"));
}

test("a login of another kind at another client leaves approved what was, as surely as the weaker of both", async () => {
  const identity = newIdentity();
  const other = await world.addClient();
  const [qrFirst, linkFirst] = [openJar(), openJar()];
  await logIn(world.baseUrl, world.client, identity, { jar: qrFirst });
  await logInOnSameDevice(other, identity, qrFirst);
  await logInOnSameDevice(other, identity, linkFirst);
  await logIn(world.baseUrl, world.client, identity, { jar: linkFirst });
  const minimum = { acr_values: "urn:svc:acr:qr-near" };
  const beyond = { acr_values: "urn:svc:acr:same-device" };
  for (const jar of [qrFirst, linkFirst])
    for (const client of [world.client, other])
      assert.equal(await faultOf(jar, minimum, client), null);
  assert.equal(await faultOf(qrFirst, beyond, other), null);
  assert.equal(await faultOf(qrFirst, beyond), "login_required");
  for (const client of [world.client, other])
    assert.equal(await faultOf(linkFirst, beyond, client), "login_required");
});

test("tokens from a session carry the acr and auth_time of the wallet's own answer, not of now", async () => {
  const [jar, identity, pkce] = [openJar(), newIdentity(), makePkce()];
  const changed = { scope: "openid" };
  await logIn(world.baseUrl, world.client, identity, { jar, changed });
  await logInOnSameDevice(await world.addClient(), identity, jar);
  const askedUntil = world.ctx.clock.now();
  await world.advance(100);
  const asked = { ...changed, prompt: "none" };
  const answered = await jar.fetch(authorizationUrl(world.baseUrl, world.client, pkce, asked));
  const code = new URL(answered.headers.get("location") ?? "").searchParams.get("code") ?? "";
  const response = await redeem(world.baseUrl, world.client, { code, verifier: pkce.verifier });
  const { acr, auth_time: askedAt } = decodeJwt(((await response.json()) as Tokens).id_token);
  assert.equal(acr, "urn:svc:acr:qr-near", "as surely as the client's own login");
  assert.ok(Number(askedAt) <= askedUntil);
});

test("a login is as old as the wallet's answer, whenever the browser came for its code, and young enough through the last second", async () => {
  using _ = world.holdTime();
  const [jar, identity] = [openJar(), newIdentity()];
  // First the login opens a session, then it renews that session.
  for (const changed of [{}, { prompt: "login" }]) {
    const page = await openPage(world.baseUrl, world.client, { jar, changed });
    await approveByQr(world.baseUrl, page, identity);
    await world.advance(30);
    await finish(world.baseUrl, page);
    await world.advance(70);
    assert.equal(await faultOf(jar, { max_age: "99" }), "login_required");
    assert.equal(await faultOf(jar, { max_age: "100" }), null);
  }
});

test("the order of scopes means nothing to a session", async () => {
  const jar = openJar();
  const changed = { scope: "openid offline", audience: apiAudience };
  await logIn(world.baseUrl, world.client, newIdentity(), { jar, changed });
  assert.equal(await faultOf(jar, changed), null);
  assert.equal(await faultOf(jar, { ...changed, scope: "offline openid openid" }), null);
  assert.equal(await faultOf(jar, { ...changed, scope: "offline" }), "login_required");
});

test("a hint names an identity in every spelling of one, with and without the prefix of a subject", async () => {
  const jar = openJar();
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity, { jar });
  for (const login_hint of spellingsOf(identity.address))
    assert.equal(await faultOf(jar, { login_hint }), null, login_hint);
  for (const login_hint of spellingsOf(newIdentity().address))
    assert.equal(await faultOf(jar, { login_hint }), "login_required", login_hint);
});

function spellingsOf(address: Address): string[] {
  const digits = address.slice(2);
  const upper = digits.toUpperCase();
  return [address, digits, `0x${upper}`, upper, checksumAddress(address)].flatMap((text) => [
    text,
    `svcid:${text}`,
  ]);
}

test("an id_token_hint decides for whom a session answers, whatever the login_hint says", async () => {
  const [jar, own, other] = [openJar(), newIdentity(), newIdentity()];
  const mine = await logIn(world.baseUrl, world.client, own, { jar });
  const theirs = await logIn(world.baseUrl, world.client, other);
  const named = { id_token_hint: theirs.tokens.id_token, login_hint: own.address };
  assert.equal(await faultOf(jar, named), "login_required");
  const hinted = { id_token_hint: mine.tokens.id_token, login_hint: other.address };
  assert.equal(await faultOf(jar, hinted), null);
});

test("prompt, a hint for another identity and an unmet acr always lead to the page", async () => {
  const jar = openJar();
  await logIn(world.baseUrl, world.client, newIdentity(), { jar });
  const stranger = await logIn(world.baseUrl, world.client, newIdentity());
  const open = async (changed: Changed): Promise<number> =>
    (await jar.fetch(authorizationUrl(world.baseUrl, world.client, makePkce(), changed))).status;
  assert.equal(await open({ prompt: undefined }), 303);
  for (const changed of [
    { prompt: "consent" },
    { prompt: "login" },
    { prompt: "select_account" },
    { prompt: undefined, max_age: "0" },
    { prompt: undefined, id_token_hint: stranger.tokens.id_token },
    { prompt: undefined, acr_values: "urn:svc:acr:same-device" },
  ])
    assert.equal(await open(changed), 200, JSON.stringify(changed));
});

test("a session grants no refresh token, and answers no request for that scope alone", async () => {
  const jar = openJar();
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity, { jar });
  const pkce = makePkce();
  const response = await jar.fetch(
    authorizationUrl(world.baseUrl, world.client, pkce, { prompt: "none" }),
  );
  const code = new URL(response.headers.get("location") ?? "").searchParams.get("code") ?? "";
  const answered = await redeem(world.baseUrl, world.client, { code, verifier: pkce.verifier });
  const tokens = (await answered.json()) as Tokens;
  assert.equal(tokens.refresh_token, undefined);
  assert.equal(tokens.scope, "openid");
  await logIn(world.baseUrl, world.client, identity, { jar, changed: { scope: "offline" } });
  assert.equal(await faultOf(jar, { scope: "offline" }), "login_required");
});

test("a session never answers for a client that cannot prove itself", async () => {
  const jar = openJar();
  const client = await world.addClient({ authenticationMethod: "none" });
  await logIn(world.baseUrl, client, newIdentity(), { jar });
  assert.equal(await faultOf(jar, {}, client), "login_required");
});

/** Uses a session begun now for seven days; it is over then, though it was used 14 minutes before. */
async function useForSevenDays(jar: Jar): Promise<void> {
  for (let half = 1; half <= 14; half += 1) {
    // A minute short, for the run time of the test itself.
    await world.advance(12 * 3600 - 60);
    assert.equal(await faultOf(jar, {}), null, `after ${half * 12} hours`);
  }
  await world.advance(14 * 60);
}

test("a session ends after 12 idle hours, and after 7 days however often it is used", async () => {
  const idle = openJar();
  await logIn(world.baseUrl, world.client, newIdentity(), { jar: idle });
  await world.advance(12 * 3600 + 1);
  assert.equal(await faultOf(idle, {}), "login_required");
  const used = openJar();
  await logIn(world.baseUrl, world.client, newIdentity(), { jar: used });
  await useForSevenDays(used);
  assert.equal(await faultOf(used, {}), "login_required");
});

test("who logs in again goes on in the browser's session, and begins another where it has ended or run out", async () => {
  const jar = openJar();
  const person = newIdentity();
  const logInAgain = async () => {
    const { tokens } = await logIn(world.baseUrl, world.client, person, { jar });
    return { hint: tokens.id_token, sid: String(decodeJwt(tokens.id_token)["sid"]) };
  };
  const first = await logInAgain();
  await world.advance(7 * 3600);
  const again = await logInAgain();
  assert.equal(again.sid, first.sid);
  // The renewed session's idle time and the age of its login start again.
  await world.advance(6 * 3600);
  assert.equal(await faultOf(jar, { max_age: String(6 * 3600 + 60) }), null);
  // A logout from elsewhere: this browser still has its cookie.
  const logout = `${world.baseUrl}/oauth2/sessions/logout?id_token_hint=${again.hint}`;
  assert.equal((await fetch(logout)).status, 200);
  assert.equal(await faultOf(jar, {}), "login_required");
  const second = await logInAgain();
  await world.advance(12 * 3600 + 1);
  const third = await logInAgain();
  await useForSevenDays(jar);
  const fourth = await logInAgain();
  assert.equal(new Set([first, second, third, fourth].map(({ sid }) => sid)).size, 4);
  assert.equal(await faultOf(jar, {}), null);
});

test("a logout still ends tokens that were refreshed for longer than their session was used", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const refresh = async (token = ""): Promise<Response> =>
    postToken(world.baseUrl, world.client, { grant_type: "refresh_token", refresh_token: token });
  await world.advance(20 * 86_400);
  const renewed = (await (await refresh(tokens.refresh_token)).json()) as Tokens;
  await world.advance(20 * 86_400);
  await purgeLogins(world.ctx);
  await untilWritersEnd(world.ctx.db);
  const query = new URLSearchParams({ id_token_hint: renewed.id_token });
  const logout = `${world.baseUrl}/oauth2/sessions/logout?${query.toString()}`;
  assert.equal((await fetch(logout)).status, 200);
  assert.equal((await refresh(renewed.refresh_token)).status, 400);
});

test("every refusal of a request goes back with its state and the issuer", async () => {
  const cases: readonly [Changed, string][] = [
    [{ response_type: "token" }, "unsupported_response_type"],
    [{ response_type: undefined }, "invalid_request"],
    [{ response_mode: "fragment" }, "invalid_request"],
    [{ scope: "openid business-card" }, "invalid_scope"],
    [{ scope: undefined }, "invalid_scope"],
    [{ code_challenge: undefined, code_challenge_method: undefined }, "invalid_request"],
    [{ code_challenge_method: "plain" }, "invalid_request"],
    [{ audience: "https://unknown.example" }, "invalid_target"],
    [{ prompt: "none login" }, "invalid_request"],
    [{ prompt: "login none" }, "invalid_request"],
    [{ max_age: "-1" }, "invalid_request"],
    [{ id_token_hint: "eyJhbGciOiJub25lIn0.e30." }, "invalid_request"],
    [{ request: "eyJhbGciOiJub25lIn0.e30." }, "request_not_supported"],
    [{ registration: "{}" }, "registration_not_supported"],
    [{ dpop_jkt: "short" }, "invalid_request"],
  ];
  for (const [changed, fault] of cases)
    assert.equal(await faultOf(openJar(), changed), fault, JSON.stringify(changed));
  const found = new Set<string>(cases.map(([, fault]) => fault));
  assert.deepEqual(found, new Set(authorizationFaults), "the reference names these and no others");
});

test("a redirect URI or client that is named twice is redirected to nowhere, whichever comes first", async () => {
  const other = await world.addClient();
  const good = new URL(authorizationUrl(world.baseUrl, world.client, makePkce()));
  for (const [name, values] of [
    ["redirect_uri", [world.client.redirectUri, "https://evil.example/callback"]],
    ["redirect_uri", ["https://evil.example/callback", world.client.redirectUri]],
    ["redirect_uri", [world.client.redirectUri, world.client.redirectUri]],
    ["client_id", [world.client.id, other.id]],
    ["client_id", [other.id, world.client.id]],
  ] as const) {
    const url = new URL(good);
    url.searchParams.delete(name);
    for (const value of values) url.searchParams.append(name, value);
    const response = await fetch(url, { redirect: "manual" });
    assert.deepEqual([response.status, response.headers.get("location")], [400, null], url.search);
  }
});

test("a code dies after a minute, whether the wallet or the session answered", async () => {
  const { client } = world;
  const page = await openPage(world.baseUrl, client, { changed: { scope: "openid" } });
  await approveByQr(world.baseUrl, page, newIdentity());
  const asked = authorizationUrl(world.baseUrl, client, page.pkce, {
    prompt: "none",
    scope: "openid",
  });
  const answers = [
    async () => finish(world.baseUrl, page),
    async () => new URL((await page.jar.fetch(asked)).headers.get("location") ?? ""),
  ];
  for (const answer of answers) {
    const code = (await answer()).searchParams.get("code") ?? "";
    await world.advance(60);
    const late = await redeem(world.baseUrl, client, { code, verifier: page.pkce.verifier });
    assert.match(await late.text(), /the code has expired/);
  }
});

test("a cookie that is planted behind the browser's own of the same name counts for nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}/status`;
  const name = `svc_login_${page.loginId}`;
  const [own, planted] = [page.jar.cookies.get(name), `1.${"A".repeat(43)}`].map(
    (value) => `${name}=${value}`,
  );
  const look = async (cookie: string) => (await fetch(url, { headers: { cookie } })).status;
  assert.equal(await look(`${own}; ${planted}`), 200);
  assert.equal(await look(`${planted}; ${own}`), 404);
});

test("logins that are finished displace none that waits in another tab", async () => {
  const waiting = await openPage(world.baseUrl, world.client);
  const { jar } = waiting;
  for (let done = 0; done < 8; done += 1) {
    await world.advance(1);
    await logIn(world.baseUrl, world.client, newIdentity(), { jar, changed: { prompt: "login" } });
  }
  const { kind } = await statusOf(world.baseUrl, waiting);
  assert.equal(kind, "waiting");
});

test("a login that starts again in one of eight tabs ends none of the others", async () => {
  const jar = openJar();
  const pages = [];
  for (let tab = 0; tab < 8; tab += 1)
    pages.push(await openPage(world.baseUrl, world.client, { jar }));
  const newest = pages.pop();
  const restart = `${world.baseUrl}/oauth2/login/${newest?.loginId}/restart`;
  const next = await jar.fetch(restart, { method: "POST" });
  const [, nextId = ""] = /\/oauth2\/login\/(.+)$/.exec(next.headers.get("location") ?? "") ?? [];
  assert.notEqual(nextId, newest?.loginId);
  for (const { loginId } of [...pages, { loginId: nextId }])
    assert.equal((await statusOf(world.baseUrl, { jar, loginId }))["kind"], "waiting");
  const held = [...jar.cookies.keys()].filter((name) => name.includes("svc_login_"));
  assert.equal(held.length, 8);
});

test("a finished login is still the first to be evicted after the button that began it is pressed again", async () => {
  const jar = openJar();
  const page = await openPage(world.baseUrl, world.client, { jar });
  const press = async (): Promise<string> => {
    const restart = `${world.baseUrl}/oauth2/login/${page.loginId}/restart`;
    const { headers } = await jar.fetch(restart, { method: "POST" });
    return headers.get("location") ?? "";
  };
  const location = await press();
  const html = await (await jar.fetch(`${world.baseUrl}${location}`)).text();
  const next = { ...page, ...hooksOf(html) };
  await approveByQr(world.baseUrl, next, newIdentity());
  await finish(world.baseUrl, next);
  assert.equal(await press(), location);
  assert.match(jar.cookies.get(`svc_login_${next.loginId}`) ?? "", /^0\./);
});

test("the cookie of a finished login runs out within a minute", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  const { headers } = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/finish`, {
    method: "POST",
  });
  const line = headers.getSetCookie().find((each) => each.includes(page.loginId)) ?? "";
  assert.match(line, /^svc_login_[^=]+=0\.[^;]{43}; Path=\/; Max-Age=60; HttpOnly; SameSite=Lax$/);
});

test("where only the same device will do, the page shows no code, which every wallet would be refused on", async () => {
  const page = await openPage(world.baseUrl, world.client, {
    changed: { acr_values: "urn:svc:acr:same-device" },
  });
  assert.equal(page.qr, "");
  assert.match(page.html, /data-same-device/);
  const identity = newIdentity();
  const returned = await page.jar.fetch(sameDeviceReturn(scan(page.sameDevice), identity));
  assert.equal(returned.status, 303);
});

test("of the proximities that a client's settings and its request demand, the stricter one holds", async () => {
  for (const [acrMinimum, asked] of [
    ["urn:svc:acr:qr-near", "urn:svc:acr:same-device"],
    ["urn:svc:acr:same-device", "urn:svc:acr:qr"],
  ] as const) {
    const client = await world.addClient({ acrMinimum });
    const page = await openPage(world.baseUrl, client, { changed: { acr_values: asked } });
    assert.equal(page.qr, "", `${acrMinimum} and ${asked}`);
  }
});

test("a session that ends while it answers gives no code", async () => {
  const jar = openJar();
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity, { jar });
  const { asked } = await world.ctx.db.transaction(async (tx) => {
    const text = "update session set ended_at = 1 where user_address = $1";
    await tx.query({ name: "", text, values: [identity.address] });
    const call = faultOf(jar, {});
    await untilBlocked(world.ctx.db, tx, [call]);
    return { asked: call };
  });
  assert.equal(await asked, "login_required");
});

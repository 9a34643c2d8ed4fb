import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text as readText } from "node:stream/consumers";
import { after, before, beforeEach, test } from "node:test";

import {
  alice,
  clientId,
  clientSecret,
  openFakeIssuer,
  subject,
  type FakeIssuer,
} from "../../../packages/merchant/test/fake-issuer.ts";
import { freePort } from "../../../test/world.ts";
import { openCookies } from "./cookies.ts";
import { locationOf } from "../test/shop-browser.ts";
import { openShop, type Shop } from "./index.ts";

let fake: FakeIssuer;
let shop: Shop;
const faults: unknown[] = [];

before(async () => {
  fake = await openFakeIssuer();
  shop = await openShop({
    port: 0,
    host: "127.0.0.1",
    issuer: fake.url,
    clientId,
    clientSecret,
    clockUrl: `${fake.url}/health/ready`,
    onFault: (error) => faults.push(error),
  });
});
after(async () => {
  await shop.close();
  await fake[Symbol.asyncDispose]();
});
beforeEach(() => {
  Object.assign(fake, {
    idToken: {},
    callback: {},
    refusal: undefined,
    tokenAnswers: [],
    tokenRefusal: undefined,
  });
  faults.length = 0;
});

/** A browser with its own cookies: buttons are POSTs from our page, redirects are followed one by one. */
function openBrowser() {
  const jar = new Map<string, string>();
  const headers = () => ({
    cookie: [...jar].map(([name, value]) => `${name}=${value}`).join("; "),
  });
  const keep = (response: Response): Response => {
    for (const line of response.headers.getSetCookie()) {
      assert.match(line, /HttpOnly/);
      assert.match(line, /SameSite=Lax/);
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      if (line.includes("Max-Age=0")) jar.delete(name);
      else jar.set(name, value);
    }
    return response;
  };
  const browser = {
    jar,
    get: async (url: string) =>
      keep(await fetch(new URL(url, shop.url), { redirect: "manual", headers: headers() })),
    press: async (action: string, origin = shop.url) => {
      const init = {
        method: "POST",
        redirect: "manual",
        headers: { ...headers(), origin },
      } as const;
      return keep(await fetch(shop.url + action, init));
    },
    /** Presses "Log in" and lets the wallet approve: the URL with which the browser comes back. */
    approve: async () =>
      locationOf(await fetch(locationOf(await browser.press("/login")), { redirect: "manual" })),
    logIn: async () => browser.get(await browser.approve()),
    home: async () => (await browser.get("/")).text(),
    sessionId: () => jar.get("shop_session"),
  };
  return browser;
}

async function postLogoutToken(token: string): Promise<Response> {
  const body = new URLSearchParams({ logout_token: token });
  return fetch(`${shop.url}/backchannel-logout`, { method: "POST", body });
}

test("a guest presses Log in, approves, and is greeted by the verified identity", async () => {
  const browser = openBrowser();
  assert.match(
    await browser.home(),
    /<form method="post" action="\/login">\s*<button class="loud">Log in<\/button>/,
  );

  const start = await browser.press("/login");
  assert.equal(start.status, 303);
  assert.ok(locationOf(start).startsWith(`${fake.url}/oauth2/auth?`));
  assert.equal(new URL(locationOf(start)).searchParams.get("redirect_uri"), `${shop.url}/callback`);

  const back = await browser.logIn();
  assert.equal(back.status, 303);
  assert.equal(locationOf(back), "/");
  const home = await browser.home();
  assert.match(home, /Hello 0x0000…11ce/);
  assert.ok(home.includes(`<code>${alice}</code>`));
  assert.ok(home.includes(subject));
  assert.match(home, /<th scope="row">acr<\/th>\s*<td>urn:svc:acr:qr-near<\/td>/);
  assert.match(home, /<time datetime="2027-01-15T08:00:00Z">/);
});

test("a login that has ended leaves the session's cookie alone, and its callback is good once", async () => {
  const browser = openBrowser();
  const url = await browser.approve();
  assert.deepEqual(
    [...browser.jar.keys()].map((name) => name.slice(0, 11)),
    ["shop_login_"],
  );
  assert.equal((await browser.get(url)).status, 303);
  assert.deepEqual([...browser.jar.keys()], ["shop_session"]);
  assert.equal((await browser.get(url)).status, 400);
});

test("a callback in another browser is refused, and says how to go on", async () => {
  const url = await openBrowser().approve();
  const victim = openBrowser();
  const requests = fake.countOf("/oauth2/token");
  const response = await victim.get(url);
  assert.equal(response.status, 400);
  const text = await response.text();
  assert.match(text, /not started in this browser[\s\S]*keeps no cookies/);
  assert.match(text, /Try again/);
  assert.match(text, /Back to the shop/);
  assert.equal(fake.countOf("/oauth2/token"), requests, "the code goes nowhere");
  assert.match(await victim.home(), /Log in/);
});

test("a callback with the state of another login of this browser is refused", async () => {
  const browser = openBrowser();
  const one = new URL(await browser.approve());
  const other = new URL(await browser.approve());
  one.searchParams.set("state", other.searchParams.get("state") ?? "");
  assert.equal((await browser.get(one.href)).status, 403);
  assert.equal(browser.sessionId(), undefined);
});

test("parallel tabs log in side by side, and the fifth forgets the first", async () => {
  const browser = openBrowser();
  const urls = [];
  for (let tab = 0; tab < 5; tab += 1) urls.push(await browser.approve());
  assert.equal(browser.jar.size, 4);
  assert.equal((await browser.get(urls[0] ?? "")).status, 400);
  assert.equal((await browser.get(urls[1] ?? "")).status, 303);
  assert.equal((await browser.get(urls[4] ?? "")).status, 303);
});

test("a login left alone for twenty minutes begins again", async (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const browser = openBrowser();
  const url = await browser.approve();
  fake.now += 20 * 60;
  assert.equal((await browser.get(url)).status, 400);
});

test("a pending login that was tampered with counts as none", async () => {
  const browser = openBrowser();
  const url = await browser.approve();
  for (const [name, value] of browser.jar) {
    const other = value.startsWith("A") ? "B" : "A";
    for (const bad of [value.slice(0, -3), other + value.slice(1), "", "x", value + value]) {
      browser.jar.set(name, bad);
      assert.equal((await browser.get(url)).status, 400);
    }
  }
});

test("each login opens a session under a new id, so nobody can plant one", async () => {
  const browser = openBrowser();
  browser.jar.set("shop_session", "planted");
  await browser.logIn();
  const first = browser.sessionId();
  assert.notEqual(first, "planted");
  await browser.logIn();
  assert.notEqual(browser.sessionId(), first);
  const thief = openBrowser();
  thief.jar.set("shop_session", first ?? "");
  assert.match(await thief.home(), /Log in/);
});

test("a session ends after twelve hours", async (t) => {
  // The machine's clock is stopped, because the shop adds the seconds that pass on it to the broker's time.
  t.mock.timers.enable({ apis: ["Date"], now: Date.now() });
  const browser = openBrowser();
  await browser.logIn();
  fake.now += 12 * 3600 - 1;
  assert.match(await browser.home(), /Hello/);
  fake.now += 1;
  assert.match(await browser.home(), /Log in/);
});

test("a declined login says so and offers to try again", async () => {
  fake.refusal = "access_denied";
  const response = await openBrowser().logIn();
  assert.equal(response.status, 403);
  const text = await response.text();
  assert.match(text, /You declined/);
  assert.match(text, /<button class="loud">Try again<\/button>/);
});

test("where the broker gave no answer, trying again goes on with the login that was approved", async () => {
  const browser = openBrowser();
  fake.tokenAnswers.push({ status: 503, body: "" });
  const url = await browser.approve();
  const page = await (await browser.get(url)).text();
  const [, again = ""] = /<a class="button" href="(.+?)">Try again</.exec(page) ?? [];
  assert.equal(shop.url + again.replaceAll("&#38;", "&"), url);
  assert.equal((await browser.get(url)).status, 303);
  assert.match(await browser.home(), /Hello/);
});

test("every fault leads to a page that says what to do next, and to the log", async () => {
  const rows: [arrange: () => void, status: number, code: string][] = [
    [() => fake.tokenAnswers.push({ status: 503, body: "" }), 503, "issuer_unreachable"],
    [
      () => fake.tokenAnswers.push({ status: 400, body: '{"error":"invalid_grant"}' }),
      403,
      "grant_refused",
    ],
    [() => (fake.callback = { iss: "https://evil.example" }), 400, "issuer_mismatch"],
    [() => (fake.idToken = { claims: { nonce: "other" } }), 500, "token_refused"],
    [() => (fake.refusal = "invalid_target"), 500, "authorization_refused"],
  ];
  for (const [arrange, status, code] of rows) {
    Object.assign(fake, { callback: {}, idToken: {}, refusal: undefined });
    arrange();
    const browser = openBrowser();
    const response = await browser.logIn();
    assert.equal(response.status, status, code);
    assert.match(await response.text(), /Try again[\s\S]*Back to the shop/);
    assert.equal((faults.pop() as { code: string }).code, code);
    assert.equal(browser.sessionId(), undefined);
  }
});

test("Refresh brings new tokens for the same person", async () => {
  const browser = openBrowser();
  await browser.logIn();
  fake.now += 600;
  assert.equal(locationOf(await browser.press("/refresh")), "/");
  assert.equal(
    locationOf(await browser.press("/refresh")),
    "/",
    "the new refresh token took the place of the old",
  );
  assert.match(await browser.home(), /Hello/);
});

test("a refresh that comes while the broker has too much to do leaves the login as it is", async () => {
  const browser = openBrowser();
  await browser.logIn();
  fake.tokenRefusal = { status: 429, error: "temporarily_unavailable" };
  const busy = await browser.press("/refresh");
  assert.equal(busy.status, 503);
  assert.match(await busy.text(), /Too many people[\s\S]*action="\/refresh"/);
  fake.tokenRefusal = undefined;
  assert.match(await browser.home(), /Hello/);
  assert.equal(locationOf(await browser.press("/refresh")), "/");
});

test("a login that was ended in the wallet ends here at the next refresh", async () => {
  const browser = openBrowser();
  await browser.logIn();
  fake.refreshTokens.clear();
  assert.equal((await browser.press("/refresh")).status, 403);
  assert.match(await browser.home(), /Log in/);
});

test("Log out ends the session, the refresh token and the broker's login", async () => {
  const browser = openBrowser();
  await browser.logIn();
  const id = browser.sessionId() ?? "";
  const held = fake.refreshTokens.size;
  const response = await browser.press("/logout");
  const target = new URL(locationOf(response));
  assert.equal(target.origin + target.pathname, `${fake.url}/oauth2/sessions/logout`);
  assert.equal(target.searchParams.get("post_logout_redirect_uri"), `${shop.url}/`);
  assert.equal(fake.refreshTokens.size, held - 1);
  assert.equal(browser.sessionId(), undefined);
  browser.jar.set("shop_session", id);
  assert.match(await browser.home(), /Log in/);
  // The answer to the first press was lost: a second press has to lead to the broker all the same.
  const again = new URL(locationOf(await browser.press("/logout")));
  assert.equal(again.origin + again.pathname, target.origin + target.pathname);
  assert.equal(again.searchParams.get("id_token_hint"), null);
});

test("whoever logs out while the broker is away is logged out all the same", async () => {
  const browser = openBrowser();
  await browser.logIn();
  const id = browser.sessionId() ?? "";
  fake.tokenRefusal = { status: 503 };
  assert.equal(locationOf(await browser.press("/logout")), "/");
  assert.equal(faults.length, 1);
  assert.equal(browser.sessionId(), undefined);
  browser.jar.set("shop_session", id);
  assert.match(await browser.home(), /Log in/);
});

test("no other site can press a button", async () => {
  const browser = openBrowser();
  await browser.logIn();
  for (const action of ["/login", "/refresh", "/logout"]) {
    for (const origin of ["https://evil.example", "null", fake.url]) {
      assert.equal((await browser.press(action, origin)).status, 403);
    }
  }
  const sameSite = await fetch(`${shop.url}/logout`, {
    method: "POST",
    headers: { "sec-fetch-site": "same-site" },
  });
  assert.equal(sameSite.status, 403);
  assert.equal((await browser.get("/logout")).status, 404);
  assert.match(await browser.home(), /Hello/);
});

test("a back-channel logout ends the sessions of that login alone", async () => {
  const [one, other] = [openBrowser(), openBrowser()];
  fake.idToken = { claims: { sid: "sid-one" } };
  await one.logIn();
  fake.idToken = { claims: { sid: "sid-other" } };
  await other.logIn();
  const token = await fake.sign("logout+jwt", { ...fake.logoutClaims(), sid: "sid-one" });
  const response = await postLogoutToken(token);
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.match(await one.home(), /Log in/);
  assert.match(await other.home(), /Hello/);
});

test("a login whose end is told before its callback is answered opens no session", async () => {
  const browser = openBrowser();
  fake.idToken = { claims: { sid: "sid-early" } };
  const url = await browser.approve();
  const token = await fake.sign("logout+jwt", { ...fake.logoutClaims(), sid: "sid-early" });
  assert.equal((await postLogoutToken(token)).status, 200);
  const response = await browser.get(url);
  assert.equal(response.status, 403);
  assert.match(await response.text(), /This login has ended/);
  assert.equal(browser.sessionId(), undefined);
});

test("a back-channel logout without a login ends all sessions of that person", async () => {
  const [one, other, bob] = [openBrowser(), openBrowser(), openBrowser()];
  await one.logIn();
  await other.logIn();
  fake.idToken = { claims: { sub: `svcid:0x${"b".repeat(40)}` } };
  await bob.logIn();
  await postLogoutToken(
    await fake.sign("logout+jwt", fake.logoutClaims(), { claims: { sid: undefined } }),
  );
  assert.match(await one.home(), /Log in/);
  assert.match(await other.home(), /Log in/);
  assert.match(await bob.home(), /Hello/);
});

test("a back-channel logout that the broker did not sign ends nothing", async () => {
  const browser = openBrowser();
  await browser.logIn();
  const idToken = await fake.sign("JWT", fake.idClaims());
  for (const token of ["", "x", idToken, "x".repeat(70_000)]) {
    const response = await postLogoutToken(token).catch(() => null);
    if (response !== null) assert.equal(response.status, 400);
  }
  assert.match(await browser.home(), /Hello/);
});

test("every page forbids scripts, framing and caching, and escapes what it shows", async () => {
  fake.idToken = { claims: { nickname: `<script>alert("1")</script>` } };
  const browser = openBrowser();
  await browser.logIn();
  const response = await browser.get("/");
  const policy = response.headers.get("content-security-policy") ?? "";
  assert.match(policy, /default-src 'none'/);
  assert.match(policy, /frame-ancestors 'none'/);
  assert.match(policy, /base-uri 'none'/);
  assert.ok(policy.includes(`form-action 'self' ${fake.url};`));
  assert.equal(response.headers.get("cache-control"), "no-store");
  assert.equal(response.headers.get("referrer-policy"), "same-origin");
  assert.doesNotMatch(await response.text(), /<script/);
});

test("strange requests get a page, never a failure", async () => {
  const browser = openBrowser();
  for (const path of [
    "/nowhere",
    "/constructor",
    "//evil.example/",
    "/%",
    "/callback",
    "/callback?state=x&code=y",
  ]) {
    const response = await browser.get(shop.url + path);
    assert.ok([400, 404].includes(response.status), path);
    assert.match(await response.text(), /Back to the shop/);
  }
  assert.equal(locationOf(await browser.get("/login")), "/");
  assert.equal(locationOf(await browser.press("/refresh")), "/");
  assert.equal(
    (await browser.get("/shop.css")).headers.get("content-type"),
    "text/css; charset=utf-8",
  );
  assert.equal((await browser.get("/favicon.svg")).status, 200);
});

test("a shop behind https sets cookies that only its own host can set", () => {
  const cookies = openCookies({
    url: "https://shop.example",
    secret: "secret",
    now: () => fake.now,
  });
  const pending = { state: "s".repeat(43), nonce: "n", codeVerifier: "v" };
  const lines = [
    ...cookies.rememberLogin(new Map(), pending),
    cookies.session("id"),
    cookies.endSession(),
  ];
  for (const line of lines)
    assert.match(line, /^__Host-shop_\w+=.*; Path=\/; HttpOnly; SameSite=Lax; Secure$/);
});

test("a form that is too large is answered, and the connection stays", async () => {
  const { hostname, port } = new URL(shop.url);
  const socket = connect(Number(port), hostname).setEncoding("latin1");
  const form = `logout_token=${"x".repeat(1_000_000)}`;
  const post = `POST /backchannel-logout HTTP/1.1\r\nhost: x\r\ncontent-length: ${form.length}\r\n\r\n`;
  socket.write(post + form);
  socket.write("GET /shop.css HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  const statuses = (await readText(socket)).match(/(?<=^HTTP\/1\.1 )\d+/gm);
  assert.deepEqual(statuses, ["400", "200"]);
});

/** Listens at a port for a moment. */
async function listen(port: number): Promise<void> {
  const server = createServer().listen(port, "127.0.0.1");
  await once(server, "listening");
  server.close();
  await once(server, "close");
}

test("a shop that cannot open lets go of its port", async () => {
  const port = await freePort();
  const directory = await mkdtemp(join(tmpdir(), "shop-"));
  const kyb = {
    apiKey: "svc_test_key",
    clientDomainId: "0",
    directory,
    chain: { rpcUrl: "http://localhost:1", chainId: 1 },
  };
  const broker = { issuer: "http://localhost:1", clientId, clientSecret };
  await assert.rejects(openShop({ port, host: "127.0.0.1", ...broker, kyb }));
  await listen(port);
  await rm(directory, { recursive: true });
});

test("a page of the shop runs no script, is what it says it is, and can be asked for without its body", async () => {
  const { headers, status } = await fetch(shop.url, { method: "HEAD" });
  assert.equal(status, 200);
  assert.equal(headers.get("content-type"), "text/html; charset=utf-8");
  assert.equal(headers.get("x-content-type-options"), "nosniff");
  assert.equal(headers.get("cache-control"), "no-store");
  const policy = headers.get("content-security-policy") ?? "";
  assert.match(policy, /^default-src 'none'; style-src 'self'; /);
  assert.doesNotMatch(policy, /script-src|connect-src/);
});

test("a logout token after 64 KiB of something else is not read", async () => {
  const token = await fake.sign("logout+jwt", fake.logoutClaims());
  const post = async (padding: number) => {
    const body = new URLSearchParams({ padding: "x".repeat(padding), logout_token: token });
    const answer = await fetch(`${shop.url}/backchannel-logout`, { method: "POST", body });
    await answer.text();
    return answer.status;
  };
  assert.deepEqual([await post(1000), await post(64 * 1024)], [200, 400]);
});

// What a client does around a login, in a real browser: redirects of its own behind the callback, a popup, and an app of
// scripts alone (client type `none`) on an origin of its own, where the browser enforces CORS.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { authorizationUrl, type LoginClient, logIn, makePkce } from "../login-flow.ts";
import { approve, newIdentity } from "../raw-wallet.ts";
import { apiAudience, openWorld, type World } from "../world.ts";
import { openBrowser } from "./browser.ts";
import { approveOnPage, claimOnPage, readDigits } from "./qr-page.ts";

let world: World;
let browser: Browser;
let site: Site;
let client: LoginClient;
let app: App;
let stranger: App;

const closing = new AsyncDisposableStack();
before(async () => {
  world = closing.use(await openWorld());
  browser = closing.use(await openBrowser());
  site = closing.use(await openSite());
  client = await world.addClient({
    redirectUris: [`${site.origin}/callback`],
    postLogoutRedirectUris: [`${site.origin}/callback`],
  });
  app = closing.use(await openApp());
  stranger = closing.use(await openApp());
  app.client = await world.addClient({
    authenticationMethod: "none",
    redirectUris: [`${app.origin}/callback`],
  });
});
after(async () => closing.disposeAsync());

interface Site extends AsyncDisposable {
  /** On 127.0.0.1, so that the service on `localhost` is another site and not only another origin. */
  readonly origin: string;
  /** Where the callback sends the browser: the same server under another origin. */
  readonly home: string;
}

async function openSite(): Promise<Site> {
  const server = createServer((request, response) => {
    if (request.url?.startsWith("/callback") === true)
      response.writeHead(303, { location: home }).end();
    else if (request.url?.startsWith("/popup") === true)
      response.writeHead(200, { "content-type": "text/html" }).end(popupPage);
    else response.writeHead(200, { "content-type": "text/html" }).end("<title>Home</title>");
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const home = `http://localhost:${port}/home`;
  return {
    origin: `http://127.0.0.1:${port}`,
    home,
    [Symbol.asyncDispose]: async () => server[Symbol.asyncDispose](),
  };
}

/** The callback of libraries for a login in a popup: it tells the opener, and closes. */
const popupPage = `<!doctype html><script>
  opener.postMessage(new URLSearchParams(location.search).has("code"), location.origin);
  close();
</script>`;

async function openLogin(options: { javaScriptEnabled: boolean }): Promise<Page> {
  const page = await browser.newPage(options);
  await page.goto(authorizationUrl(world.baseUrl, client, makePkce()));
  return page;
}

/** Presses through a login without scripts, up to the button that leads to the client. */
async function approveByButtons(page: Page): Promise<void> {
  await page.locator("form[data-form=show-code] button").click();
  const claimed = await claimOnPage(page, newIdentity());
  await page.locator("form[data-form=continue] button").click();
  const approved = await approve(claimed, await readDigits(page));
  assert.equal(approved.status, 200);
}

test("a callback may send the browser on to another origin, also without JavaScript", async () => {
  const page = await openLogin({ javaScriptEnabled: false });
  await approveByButtons(page);
  await page.locator("form[data-form=continue] button").click();
  await page.waitForURL(site.home);
  await page.close();
});

test("whoever is asked and logs out is sent on to another origin by the client's own page", async () => {
  const page = await openLogin({ javaScriptEnabled: true });
  await approveOnPage(page, newIdentity());
  await page.waitForURL(site.home);
  const address = new URLSearchParams({
    client_id: client.id,
    post_logout_redirect_uri: `${site.origin}/callback`,
  });
  await page.goto(`${world.baseUrl}/oauth2/sessions/logout?${address.toString()}`);
  await page.locator("button[value=logout]").click();
  await page.waitForURL(site.home);
  await page.close();
});

test("a login in a popup is open until its callback has told the page that opened it", async () => {
  const redirectUri = `${site.origin}/popup`;
  const address = authorizationUrl(
    world.baseUrl,
    await world.addClient({ redirectUris: [redirectUri] }),
    makePkce(),
  );
  const page = await browser.newPage();
  await page.goto(site.origin);
  await page.evaluate(
    `told = new Promise((resolve) => addEventListener("message", resolve)); null`,
  );
  const [popup] = await Promise.all([
    page.waitForEvent("popup"),
    page.evaluate(`popup = open(${JSON.stringify(address)}, "login", "width=500"); null`),
  ]);
  await popup.locator("[data-qr]").waitFor();
  assert.equal(await page.evaluate("popup.closed"), false);
  await approveOnPage(popup, newIdentity());
  assert.equal(await page.evaluate("told.then(({ data }) => data)"), true);
  await page.close();
});

interface App extends AsyncDisposable {
  /** On 127.0.0.1, so that the service on `localhost` is another site and not only another origin. */
  readonly origin: string;
  client?: LoginClient;
}

async function openApp(): Promise<App> {
  const server = createServer((_request, response) => {
    response.writeHead(200, { "content-type": "text/html" }).end(appPage(opened));
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const opened: App = {
    [Symbol.asyncDispose]: async () => server[Symbol.asyncDispose](),
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
  };
  return opened;
}

/** The whole app: a button, the exchange with PKCE alone, and what came of it in `<output>`. */
function appPage(shown: App): string {
  return `<!doctype html>
<title>App</title>
<link rel="icon" href="data:," />
<button disabled>Log in</button>
<output></output>
<script type="module">
  const clientId = ${JSON.stringify(shown.client?.id ?? "")};
  const redirectUri = location.origin + "/callback";
  const { authorization_endpoint, token_endpoint, userinfo_endpoint, revocation_endpoint } = await (
    await fetch("${world.baseUrl}/.well-known/openid-configuration")
  ).json();
  const base64url = (bytes) => new Uint8Array(bytes).toBase64({ alphabet: "base64url", omitPadding: true });
  const post = (url, members) => fetch(url, { method: "POST", body: new URLSearchParams({ client_id: clientId, ...members }) });

  const button = document.querySelector("button");
  button.addEventListener("click", async () => {
    const verifier = base64url(crypto.getRandomValues(new Uint8Array(32)));
    const state = base64url(crypto.getRandomValues(new Uint8Array(16)));
    Object.assign(sessionStorage, { verifier, state });
    const challenge = base64url(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier)));
    location.assign(authorization_endpoint + "?" + new URLSearchParams({
      client_id: clientId, redirect_uri: redirectUri, response_type: "code", scope: "openid offline_access", state,
      code_challenge: challenge, code_challenge_method: "S256", audience: "${apiAudience}", prompt: "consent",
    }));
  });
  // Only now: a page is loaded before its module has got its answer.
  button.disabled = false;

  const answer = new URLSearchParams(location.search);
  if (answer.has("code")) {
    const { verifier, state } = sessionStorage;
    if (answer.get("state") !== state) throw new Error("another login");
    const tokens = await (await post(token_endpoint, {
      grant_type: "authorization_code", code: answer.get("code"), redirect_uri: redirectUri, code_verifier: verifier,
    })).json();
    const userinfo = () => fetch(userinfo_endpoint, { headers: { authorization: "Bearer " + tokens.access_token } });
    const user = await (await userinfo()).json();
    const refreshed = await (await post(token_endpoint, { grant_type: "refresh_token", refresh_token: tokens.refresh_token })).json();
    const revoked = (await post(revocation_endpoint, { token: refreshed.refresh_token })).status;
    const after = await userinfo();
    document.querySelector("output").textContent = JSON.stringify({
      sub: user.sub, tokenType: refreshed.token_type, revoked, after: after.status, challenge: after.headers.get("www-authenticate"),
    });
  }
</script>`;
}

/** @returns the status that a script of this page sees; 0 where the browser's CORS checks hide the answer */
async function statusSeenBy(page: Page, url: string, init: RequestInit = {}): Promise<number> {
  const given = JSON.stringify([url, init]);
  return page.evaluate<number>(
    `fetch(...${given}).then(({ status }) => status, (error) => error instanceof TypeError ? 0 : Promise.reject(error))`,
  );
}

const unreadable = 0;
const formOf = (members: Record<string, string>): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/x-www-form-urlencoded" },
  body: new URLSearchParams(members).toString(),
});

test("a browser-only app on its registered origin logs in, reads userinfo, refreshes and revokes", async () => {
  const page = await browser.newPage();
  await page.goto(app.origin);
  await page.getByRole("button", { name: "Log in" }).click();
  await page.locator("[data-qr]").waitFor();
  const alice = newIdentity();
  await approveOnPage(page, alice);
  await page.waitForURL(`${app.origin}/callback?**`);
  const output = page.locator("output:not(:empty)");
  const seen = JSON.parse(await output.innerText()) as Record<string, unknown>;
  assert.deepEqual(
    { ...seen, challenge: null },
    {
      sub: `svcid:${alice.address}`,
      tokenType: "bearer",
      revoked: 200,
      after: 401,
      challenge: null,
    },
  );
  assert.match(String(seen["challenge"]), /^Bearer .*error="invalid_token"/);
  await page.close();
});

test("scripts of any other origin read the published documents alone", async () => {
  const known = app.client ?? world.client;
  const { tokens } = await logIn(world.baseUrl, known, newIdentity());
  const bearer = { headers: { authorization: `Bearer ${tokens.access_token}` } };
  const revocation = formOf({ client_id: known.id, token: "none" });
  const refresh = formOf({
    client_id: known.id,
    grant_type: "refresh_token",
    refresh_token: "none",
  });
  const seenFrom = async (origin: string): Promise<Record<string, number>> => {
    const page = await browser.newPage();
    await page.goto(origin);
    const at = async (path: string, init?: RequestInit): Promise<number> =>
      statusSeenBy(page, `${world.baseUrl}${path}`, init);
    const seen = {
      discovery: await at("/.well-known/openid-configuration"),
      metadata: await at("/.well-known/oauth-authorization-server"),
      keys: await at("/.well-known/jwks.json"),
      token: await at("/oauth2/token", refresh),
      userinfo: await at("/userinfo", bearer),
      revoke: await at("/oauth2/revoke", revocation),
    };
    await page.close();
    return seen;
  };
  const documents = { discovery: 200, metadata: 200, keys: 200 };
  assert.deepEqual(await seenFrom(app.origin), {
    ...documents,
    token: 400,
    userinfo: 200,
    revoke: 200,
  });
  const nothing = { ...documents, token: unreadable, userinfo: unreadable, revoke: unreadable };
  assert.deepEqual(await seenFrom(stranger.origin), nothing);
  // With a client of its own the origin passes preflights, but cannot read answers meant for another client.
  await world.addClient({ redirectUris: [`${stranger.origin}/callback`] });
  await world.advance(2);
  assert.deepEqual(await seenFrom(stranger.origin), nothing);
});

test("routes of servers and of pages are closed to scripts, whatever the origin", async () => {
  const { id } = app.client ?? world.client;
  const form = formOf({ client_id: id, token: "none" });
  const json = {
    method: "POST",
    headers: { "content-type": "application/json", authorization: "key" },
    body: "{}",
  };
  const withKey = { headers: { authorization: "key" } };
  const closed: [path: string, init: RequestInit][] = [
    ["/api/v1/key", withKey],
    ["/api/v1/blockchain/verified?user=0x0&items=EMAIL", withKey],
    ["/api/v1/blockchain/valid", json],
    ["/api/v2/kyc/qrcode", json],
    ["/api/v2/kyc/status?referenceKey=x", withKey],
    ["/oauth2/introspect", form],
    ["/oauth2/par", form],
    ["/oauth2/auth", {}],
    ["/oauth2/sessions/logout", {}],
  ];
  const page = await browser.newPage();
  await page.goto(app.origin);
  const control = { method: "OPTIONS", headers: { origin: app.origin } };
  const opened = await fetch(`${world.baseUrl}/oauth2/token`, control);
  assert.equal(opened.headers.get("access-control-allow-origin"), app.origin);
  for (const [path, init] of closed) {
    const url = `${world.baseUrl}${path}`;
    assert.equal(await statusSeenBy(page, url, init), unreadable, path);
    const preflight = {
      method: "OPTIONS",
      headers: {
        "access-control-request-method": init.method ?? "GET",
        "access-control-request-headers": "authorization",
      },
    };
    for (const each of [init, preflight]) {
      const headers = { ...(each.headers as Record<string, string>), origin: app.origin };
      const response = await fetch(url, { ...each, headers });
      await response.body?.cancel();
      const names = [...response.headers.keys()].filter((name) =>
        name.startsWith("access-control-"),
      );
      assert.deepEqual(names, [], `${each.method ?? "GET"} ${path}`);
    }
  }
  await page.close();
});

// What other sites could send to the forms of the login page or, as forms, to wallet routes, and what the page's own
// forms look like.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { claimOf } from "@svc/protocol";
import { openJar } from "../cookie-jar.ts";
import {
  approveByQr,
  authorizationUrl,
  basicOf,
  logIn,
  makePkce,
  openPage,
  redeem,
  statusOf,
} from "../login-flow.ts";
import { newIdentity, scan } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function submit(
  action: string,
  headers: Record<string, string>,
  path = "/oauth2/login",
): Promise<Response> {
  const page = await openPage(world.baseUrl, world.client);
  const url = `${world.baseUrl}${path}/${page.loginId}/${action}`;
  return page.jar.fetch(url, { method: "POST", headers });
}

test("the page's own forms work although its policy makes browsers send Origin: null", async () => {
  const headers = { origin: "null", "sec-fetch-site": "same-origin" };
  for (const action of ["show-code", "restart", "continue"]) {
    const response = await submit(action, headers);
    assert.equal(response.status, 303, `${action}: ${await response.text()}`);
  }
});

test("a form that is sent twice releases one code, and leads to a page with the way back", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  const address = `${world.baseUrl}/oauth2/login/${page.loginId}`;
  const send = async (): Promise<string> =>
    (await page.jar.fetch(`${address}/continue`, { method: "POST" })).headers.get("location") ?? "";
  assert.ok(new URL(await send()).searchParams.has("code"));
  assert.equal(await send(), new URL(address).pathname);
  const shown = await page.jar.fetch(address);
  assert.equal(shown.status, 200);
  assert.match(await shown.text(), /<p class="back">\s*<a[^>]*>Back to/);
});

test("an error page speaks the language that the request asks for, by GET or POST", async () => {
  const client = { ...world.client, id: "nobody" };
  const url = new URL(authorizationUrl(world.baseUrl, client, makePkce(), { ui_locales: "de" }));
  for (const failed of [
    await fetch(url),
    await fetch(url.origin + url.pathname, { method: "POST", body: url.searchParams }),
  ]) {
    assert.equal(failed.status, 400);
    assert.match(await failed.text(), /<html lang="de">/);
  }
});

test("forms of other sites are refused, however they dress", async () => {
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: `${world.baseUrl}.evil.example` },
    { origin: "null" },
    { origin: "null", "sec-fetch-site": "cross-site" },
    { origin: "null", "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "cross-site" },
    { origin: world.baseUrl, "sec-fetch-site": "cross-site" },
  ] as Record<string, string>[]) {
    for (const action of ["show-code", "restart", "continue", "give-up", "finish"])
      assert.equal(
        (await submit(action, headers)).status,
        403,
        `${action} ${JSON.stringify(headers)}`,
      );
  }
});

test("forms of other sites are refused however they write the path", async () => {
  const headers = { origin: "https://evil.example", "sec-fetch-site": "cross-site" };
  for (const path of ["/oauth2/%6cogin", "/%6fauth2/login", "/oauth2/%6Cog%69n"])
    for (const action of ["show-code", "restart", "continue", "give-up", "finish", "%66inish"])
      assert.equal((await submit(action, headers, path)).status, 403, `${path} ${action}`);
});

/** The document's request as a form that a browser sends from another site. */
async function postAuthorization(
  changed: Record<string, string>,
  { headers = { "sec-fetch-site": "cross-site" }, pkce = makePkce(), jar = openJar() } = {},
): Promise<{ response: Response; url: string }> {
  const url = authorizationUrl(world.baseUrl, world.client, pkce, changed);
  const body = new URL(url).searchParams;
  const response = await jar.fetch(`${world.baseUrl}/oauth2/auth`, {
    method: "POST",
    headers,
    body,
  });
  return { response, url };
}

async function countLogins(): Promise<number> {
  const text = "select count(*)::int as n from login";
  const [row] = await world.ctx.db.query<{ n: number }>({ name: "", text, values: [] });
  return row?.n ?? -1;
}

test("an authorization request by a form of another site comes back as GET, and nothing is made before", async () => {
  const known = await countLogins();
  const { response, url } = await postAuthorization({ state: "a b&c", audience: "" });
  assert.equal(response.status, 303);
  const location = new URL(response.headers.get("location") ?? "", world.baseUrl);
  assert.equal(location.href, url);
  assert.deepEqual(response.headers.getSetCookie(), []);
  assert.equal(await countLogins(), known);
});

test("a form is answered as it came by what is no browser, with cookies, and where no address may hold it", async () => {
  const site = { "sec-fetch-site": "cross-site" };
  const { jar } = await openPage(world.baseUrl, world.client);
  for (const { changed = {}, ...options } of [
    { headers: {} },
    { headers: { "sec-fetch-site": "same-site" } },
    { headers: site, jar },
    { headers: site, changed: { state: "x".repeat(4090) } },
    { headers: site, changed: { login_hint: newIdentity().address } },
  ] as { headers: { "sec-fetch-site": string }; changed?: Record<string, string> }[])
    assert.equal((await postAuthorization(changed, options)).response.status, 200);
});

test("a client's form with prompt=none is answered from the session, with a hint too", async () => {
  const asked = { scope: "openid" };
  const { page, tokens } = await logIn(world.baseUrl, world.client, newIdentity(), {
    changed: asked,
  });
  for (const hint of [{}, { id_token_hint: tokens.id_token }]) {
    const pkce = makePkce();
    // The browser sends no cookies with a form of another site, but does with the GET that follows.
    const changed = { ...asked, ...hint, prompt: "none" };
    const { response } = await postAuthorization(changed, { pkce });
    const location = response.headers.get("location") ?? "";
    const followed = await page.jar.fetch(new URL(location, world.baseUrl).href);
    const code = new URL(followed.headers.get("location") ?? "").searchParams.get("code") ?? "";
    const redeemed = await redeem(world.baseUrl, world.client, { code, verifier: pkce.verifier });
    assert.equal(redeemed.status, 200, await redeemed.text());
  }
});

test("wallet routes take no form, which any site could have a browser post without asking by CORS", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { session, connection } = scan(page.qr);
  const claim = {
    session,
    svcID: newIdentity().address,
    claim: claimOf(Buffer.alloc(32).toString("base64url")),
  };
  const call = { jsonrpc: "2.0", id: "1", method: "eth_chainId" };
  for (const [url, members] of [
    [`${connection}/claim`, claim],
    [connection, { error: "access_denied", session }],
    [`${world.baseUrl}/w/session/challenge`, { any: "thing" }],
    [`${world.baseUrl}/w/chain`, call],
  ] as const) {
    const answer = await fetch(url, { method: "POST", body: new URLSearchParams(members) });
    const { error } = (await answer.json()) as { error?: { reason: string } };
    assert.deepEqual([answer.status, error?.reason], [415, "unsupported_media_type"], url);
  }
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
});

test("what takes forms takes no JSON, which would get past what a browser asks before by CORS", async () => {
  const { client, baseUrl } = world;
  const asked = new URL(authorizationUrl(baseUrl, client, makePkce())).searchParams;
  const request = Object.fromEntries(asked);
  for (const [path, members] of [
    ["token", { grant_type: "client_credentials" }],
    ["introspect", { token: "unknown" }],
    ["revoke", { token: "unknown" }],
    ["par", request],
    ["auth", request],
  ] as const) {
    const send = async (body: string | URLSearchParams, type?: string): Promise<Response> =>
      fetch(`${baseUrl}/oauth2/${path}`, {
        method: "POST",
        headers: {
          authorization: basicOf(client),
          ...(type === undefined ? {} : { "content-type": type }),
        },
        body,
      });
    assert.ok((await send(new URLSearchParams(members))).ok, path);
    const refused = await send(JSON.stringify(members), "application/json");
    assert.equal(refused.status, path === "auth" ? 415 : 400, path);
  }
});

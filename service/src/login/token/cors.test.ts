import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  addClient,
  addCode,
  type Answer,
  get,
  openTestLogin,
  post,
  redeem,
} from "../test-login.ts";
import { changeTestClient, disableTestClient } from "../test-login-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const shop = "https://shop.example";
const spa = await addClient(login, {
  method: "none",
  redirectUris: [`${shop}/callback`, "com.example.app:/cb"],
});
const other = await addClient(login, {
  method: "none",
  redirectUris: ["http://localhost:4999/callback"],
});
const allowed = "access-control-allow-origin";

async function preflight(path: string, origin: string): Promise<Record<string, unknown>> {
  const headers = { origin, "access-control-request-method": "POST" };
  const response = await login.http.inject({ method: "OPTIONS", url: path, headers });
  return { status: response.statusCode, ...response.headers };
}

test("a preflight is answered for the origins of registered clients, without credentials", async () => {
  for (const path of ["/oauth2/token", "/oauth2/revoke", "/userinfo"]) {
    for (const origin of [shop, "http://localhost:4999"]) {
      const answer = await preflight(path, origin);
      assert.equal(answer["status"], 204);
      assert.equal(answer[allowed], origin);
      assert.equal(answer["access-control-allow-credentials"], undefined);
      assert.match(String(answer["access-control-allow-headers"]), /Authorization.*DPoP/);
      assert.equal(answer["vary"], "Origin");
    }
    for (const origin of [
      "https://evil.example",
      "null",
      "https://shop.example.evil.example",
      "http://shop.example",
      "com.example.app:",
    ])
      assert.equal((await preflight(path, origin))[allowed], undefined, origin);
  }
});

test("a client registered a moment ago is known to preflights, and foreign origins ask at most once a second", async () => {
  await addClient(login, { redirectUris: ["https://new.example/cb"] });
  login.clock.advance(2);
  assert.equal(
    (await preflight("/oauth2/token", "https://new.example"))[allowed],
    "https://new.example",
  );
  const before = login.ctx.db.callsTotal;
  for (let at = 0; at < 20; at += 1) await preflight("/oauth2/token", `https://evil${at}.example`);
  assert.ok(login.ctx.db.callsTotal - before <= 1);
});

test("the origins of a client that is disabled are foreign to preflights", async () => {
  const origin = "https://gone.example";
  const gone = await addClient(login, { redirectUris: [`${origin}/cb`] });
  login.clock.advance(31);
  const ask = async () => (await preflight("/oauth2/token", origin))[allowed];
  assert.equal(await ask(), origin);
  await disableTestClient(login.ctx.db, gone.id);
  login.clock.advance(31);
  assert.equal(await ask(), undefined);
});

test("the answer is open to the client's own origins alone, errors included", async () => {
  const redeemFrom = async (origin: string): Promise<unknown> => {
    const code = await addCode(login, spa);
    const headers = { authorization: undefined, origin };
    const answer = await redeem(login, spa, { ...code, form: { client_id: spa.id }, headers });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers["vary"], "Origin");
    return answer.headers[allowed];
  };
  assert.equal(await redeemFrom(shop), shop);
  // A page without an origin sends "null", which is also what `URL` gives for the client's private scheme.
  for (const origin of ["http://localhost:4999", "null"])
    assert.equal(await redeemFrom(origin), undefined);
  const form = { client_id: spa.id, grant_type: "authorization_code" };
  const failed = await post(login, "/oauth2/token", { form, headers: { origin: shop } });
  assert.deepEqual([failed.status, failed.headers[allowed]], [400, shop]);
  const revoked = await post(login, "/oauth2/revoke", {
    form: { client_id: other.id, token: "x" },
    headers: { origin: shop },
  });
  assert.deepEqual([revoked.status, revoked.headers[allowed]], [200, undefined]);
});

test("the answer is open to an origin that a cached client was given since, and its code is good", async () => {
  const client = await addClient(login, { method: "none" });
  const origin = "https://added.example";
  const added = `${origin}/cb`;
  const redeemAt = async (redirectUri: string, from: string): Promise<Answer> =>
    redeem(login, client, {
      ...(await addCode(login, client, { redirectUri })),
      form: { client_id: client.id, redirect_uri: redirectUri },
      headers: { authorization: undefined, origin: from },
    });
  assert.equal((await redeemAt(`${shop}/callback`, shop)).headers[allowed], shop);
  await changeTestClient(login.ctx.db, client.id, { redirectUris: [added] });
  login.clock.advance(2);
  const answer = await redeemAt(added, origin);
  assert.deepEqual([answer.status, answer.headers[allowed]], [200, origin]);
  const before = login.ctx.db.callsTotal;
  const form = { client_id: client.id, grant_type: "x" };
  const foreign = await post(login, "/oauth2/token", {
    form,
    headers: { origin: "https://evil.example" },
  });
  assert.equal(foreign.headers[allowed], undefined);
  assert.equal(login.ctx.db.callsTotal - before, 0, "an origin of no client costs no statement");
});

test("a client that proves itself in the header is told by it, form-encoded or not, whatever the form says", async () => {
  const shopClient = await addClient(login, { redirectUris: [`${shop}/callback`] });
  const form = { grant_type: "refresh_token", refresh_token: "x" };
  for (const origin of [shop, "http://localhost:4999"]) {
    for (const id of [shopClient.id, shopClient.id.replaceAll("-", "%2D")]) {
      const text = Buffer.from(`${id}:${shopClient.secret}`).toString("base64");
      const headers = { authorization: `Basic ${text}`, origin };
      const answer = await post(login, "/oauth2/token", { form, headers });
      assert.deepEqual([answer.status, answer.body["error"]], [400, "invalid_grant"]);
      assert.equal(answer.headers[allowed], origin === shop ? shop : undefined, `${origin} ${id}`);
    }
  }
});

test("a refusal of what could not be read is open to the origins of every client, and to no other", async () => {
  const form = "application/x-www-form-urlencoded";
  const unreadable: [type: string, body: string, status: number][] = [
    ["application/json", "{}", 400],
    ["text/plain", "grant_type=authorization_code", 400],
    [form, "grant_type=%00", 400],
    [form, `client_id=${"x".repeat(70_000)}`, 413],
  ];
  for (const url of ["/oauth2/token", "/oauth2/revoke", "/userinfo"])
    for (const [type, payload, status] of unreadable)
      for (const origin of [shop, "http://localhost:4999", "https://evil.example"]) {
        const headers = { origin, "content-type": type };
        const answer = await login.http.inject({ method: "POST", url, payload, headers });
        const expected = origin === "https://evil.example" ? undefined : origin;
        const name = `${url} ${type} ${origin}`;
        assert.deepEqual([answer.statusCode, answer.headers[allowed]], [status, expected], name);
        assert.equal(answer.headers["vary"], "Origin");
      }
  const headers = { origin: shop, "content-type": "text/plain" };
  const url = "/oauth2/introspect";
  const closed = await login.http.inject({ method: "POST", url, payload: "x", headers });
  assert.deepEqual([closed.statusCode, closed.headers[allowed]], [400, undefined]);
});

test("a refusal of a call that names no client of ours is open to the origins of every client, and to no other", async () => {
  const nobody = { client_id: "nobody", grant_type: "refresh_token", token: "x" };
  const calls: [ask: (headers: Record<string, string>) => Promise<Answer>, status: number][] = [
    [async (headers) => post(login, "/oauth2/token", { form: { grant_type: "x" }, headers }), 401],
    [async (headers) => post(login, "/oauth2/token", { form: nobody, headers }), 401],
    [async (headers) => post(login, "/oauth2/revoke", { form: nobody, headers }), 401],
    [async (headers) => get(login, "/userinfo", headers), 401],
    [async (headers) => get(login, "/userinfo", { authorization: "Bearer junk", ...headers }), 401],
  ];
  for (const [ask, status] of calls)
    for (const origin of [shop, "http://localhost:4999", "https://evil.example"]) {
      const answer = await ask({ origin });
      const expected = origin === "https://evil.example" ? undefined : origin;
      assert.deepEqual([answer.status, answer.headers[allowed]], [status, expected], origin);
      assert.equal(answer.headers["vary"], "Origin");
    }
});

test("a call whose client cannot be looked up is open to nobody", async (t) => {
  assert.equal((await preflight("/oauth2/token", shop))[allowed], shop);
  t.mock.method(login.ctx.clients, "find", async () => {
    throw new Error("Connection terminated");
  });
  const form = { client_id: spa.id, grant_type: "refresh_token", refresh_token: "x" };
  const answer = await post(login, "/oauth2/token", { form, headers: { origin: shop } });
  assert.deepEqual([answer.status, answer.headers[allowed]], [503, undefined]);
  assert.equal(answer.headers["vary"], "Origin");
});

test("userinfo is open to the origins of the token's client", async () => {
  const code = await addCode(login, spa);
  const given = { ...code, form: { client_id: spa.id }, headers: { authorization: undefined } };
  const token = String((await redeem(login, spa, given)).body["access_token"]);
  const ask = async (origin: string) =>
    get(login, "/userinfo", { authorization: `Bearer ${token}`, origin });
  const good = await ask(shop);
  assert.deepEqual([good.status, good.headers[allowed]], [200, shop]);
  // No other header tells a script why it was refused, when to come back and what to quote.
  for (const name of ["WWW-Authenticate", "Retry-After", "X-Request-Id"])
    assert.ok(String(good.headers["access-control-expose-headers"]).split(", ").includes(name));
  assert.equal((await ask("https://evil.example")).headers[allowed], undefined);
  const changed = `Bearer ${token.slice(0, -9)}AAAAAAAAA`;
  for (const origin of [shop, "http://localhost:4999"]) {
    const refused = await get(login, "/userinfo", { authorization: changed, origin });
    const expected = origin === shop ? shop : undefined;
    assert.deepEqual([refused.status, refused.headers[allowed]], [401, expected]);
  }
});

test("userinfo by form stays closed to the origins of a client that the form names beside the token", async () => {
  const given = { ...(await addCode(login, spa)), form: { client_id: spa.id } };
  const headers = { authorization: undefined };
  const { body } = await redeem(login, spa, { ...given, headers });
  const ask = async (origin: string): Promise<unknown> => {
    const form = { access_token: String(body["access_token"]), client_id: other.id };
    const answer = await post(login, "/userinfo", { form, headers: { origin } });
    assert.equal(answer.status, 200, answer.text);
    return answer.headers[allowed];
  };
  assert.equal(await ask(shop), shop);
  assert.equal(await ask("http://localhost:4999"), undefined);
});

test("a preflight for a published document is answered for every origin, whatever headers a script adds", async () => {
  for (const name of [
    "openid-configuration",
    "oauth-authorization-server",
    "jwks.json",
    "wallet-jwks.json",
  ]) {
    const answer = await preflight(`/.well-known/${name}`, "https://anybody.example");
    assert.deepEqual([answer["status"], answer[allowed]], [204, "*"]);
    assert.equal(answer["access-control-allow-headers"], "*");
    assert.equal(answer["access-control-allow-methods"], "GET");
    assert.equal(answer["access-control-allow-credentials"], undefined);
  }
});

test("introspection is never open to scripts", async () => {
  const confidential = await addClient(login);
  assert.notEqual((await preflight("/oauth2/introspect", shop))["status"], 204);
  const headers = { authorization: confidential.basic, origin: shop };
  const answer = await post(login, "/oauth2/introspect", { form: { token: "x" }, headers });
  assert.deepEqual([answer.status, answer.headers[allowed]], [200, undefined]);
});

test("discovery says where everything is, and only what is true", async () => {
  const { body } = await get(login, "/.well-known/openid-configuration");
  const same = await get(login, "/.well-known/oauth-authorization-server");
  assert.deepEqual(body, same.body);
  assert.equal(body["issuer"], "http://localhost:4000");
  for (const [name, value] of Object.entries(body))
    if (/_endpoint$|_uri$/.test(name))
      assert.ok(String(value).startsWith("http://localhost:4000/"), name);
  for (const name of ["token", "revocation", "introspection", "userinfo", "end_session"]) {
    const url = new URL(String(body[`${name}_endpoint`]));
    const response = await login.http.inject({ method: "POST", url: url.pathname });
    assert.notEqual(response.statusCode, 404, name);
  }
  assert.equal(body["request_uri_parameter_supported"], false);
  assert.deepEqual(body["code_challenge_methods_supported"], ["S256"]);
});

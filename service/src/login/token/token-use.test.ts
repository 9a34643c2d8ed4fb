import assert from "node:assert/strict";
import { after, test } from "node:test";
import { signJwt } from "../keys/jwt.ts";
import {
  addClient,
  addCode,
  type Answer,
  claimsOf,
  get,
  openTestLogin,
  post,
  redeem,
  refresh,
  refused,
  type TestClient,
  user,
} from "../test-login.ts";
import { disableTestClient } from "../test-login-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const client = await addClient(login);
const other = await addClient(login, { audiences: [] });
const api = await addClient(login, { audiences: ["https://api.example.com"] });

async function tokensOf(of: TestClient, request = {}): Promise<Record<string, unknown>> {
  const answer = await redeem(login, of, await addCode(login, of, request));
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

async function introspect(by: TestClient, token: unknown): Promise<Answer> {
  const form = { token: String(token) };
  return post(login, "/oauth2/introspect", { form, headers: { authorization: by.basic } });
}

async function userinfo(token: unknown): Promise<Answer> {
  return get(login, "/userinfo", { authorization: `Bearer ${String(token)}` });
}

async function callsOf(work: () => Promise<Answer>): Promise<{ calls: number; answer: Answer }> {
  await Promise.all([client, other, api].map(async (each) => login.ctx.clients.find(each.id)));
  const before = login.ctx.db.callsTotal;
  const answer = await work();
  return { calls: login.ctx.db.callsTotal - before, answer };
}

test("introspection tells the owner of a token and its audience everything, in one call", async () => {
  const tokens = await tokensOf(client, { audience: ["https://api.example.com"] });
  const { calls, answer } = await callsOf(async () => introspect(client, tokens["access_token"]));
  assert.equal(calls, 1);
  assert.deepEqual(answer.body, {
    active: true,
    ...claimsOf(tokens["access_token"]),
    token_type: "bearer",
    token_use: "access_token",
  });
  assert.deepEqual((await introspect(api, tokens["access_token"])).body, answer.body);
  const ofRefresh = await callsOf(async () => introspect(client, tokens["refresh_token"]));
  assert.equal(ofRefresh.calls, 1);
  assert.deepEqual(ofRefresh.answer.body, {
    active: true,
    iss: "http://localhost:4000",
    sub: `svcid:${user}`,
    aud: ["https://api.example.com"],
    client_id: client.id,
    scope: "openid offline_access",
    iat: login.clock.now(),
    exp: login.clock.now() + 30 * 86_400,
    token_use: "refresh_token",
  });
});

test("a refresh token was issued when it was last rotated", async () => {
  const tokens = await tokensOf(client);
  login.clock.advance(100);
  const rotated = await refresh(login, client, tokens["refresh_token"]);
  const { body } = await introspect(client, rotated.body["refresh_token"]);
  const now = login.clock.now();
  assert.deepEqual([body["active"], body["iat"]], [true, now]);
});

test("to anybody else, and of anything else, introspection says inactive and no more", async () => {
  const tokens = await tokensOf(client);
  const withApi = await tokensOf(client, { audience: ["https://api.example.com"] });
  const rotated = await refresh(login, client, tokens["refresh_token"]);
  const asked: [TestClient, unknown][] = [
    [other, tokens["access_token"]],
    [other, rotated.body["refresh_token"]],
    [api, tokens["access_token"]],
    [api, withApi["refresh_token"]],
    [client, tokens["refresh_token"]],
    [client, tokens["id_token"]],
    [client, "junk"],
    [client, `${String(tokens["access_token"]).slice(0, -8)}AAAAAAAA`],
  ];
  for (const [by, token] of asked) {
    const answer = await introspect(by, token);
    assert.equal(answer.status, 200);
    assert.deepEqual(answer.body, { active: false });
  }
});

test("introspection is for clients that prove themselves", async () => {
  const spa = await addClient(login, { method: "none" });
  const tokens = await tokensOf(client);
  const form = { token: String(tokens["access_token"]), client_id: spa.id };
  refused(await post(login, "/oauth2/introspect", { form }), 401, "invalid_client");
  refused(await post(login, "/oauth2/introspect", { form: { token: "x" } }), 401, "invalid_client");
  const headers = { authorization: client.basic };
  refused(await post(login, "/oauth2/introspect", { form: {}, headers }), 400, "invalid_request");
  refused(
    await post(login, "/oauth2/introspect", { form: { token: ["a", "b"] }, headers }),
    400,
    "invalid_request",
  );
});

test("userinfo answers subject and ext by every way a token may be sent, in one call", async () => {
  const tokens = await tokensOf(client, { audience: ["https://api.example.com"] });
  const access = String(tokens["access_token"]);
  const { calls, answer } = await callsOf(async () => userinfo(access));
  assert.equal(calls, 1);
  assert.deepEqual(answer.body, { sub: `svcid:${user}`, ext: {} });
  const byHeader = await login.http.inject({
    method: "POST",
    url: "/userinfo",
    headers: { authorization: `bearer ${access}` },
  });
  assert.equal(byHeader.statusCode, 200, byHeader.body);
  const form = { access_token: access };
  assert.equal((await post(login, "/userinfo", { form })).status, 200);
});

test("userinfo refuses with the challenge of RFC 6750", async () => {
  const tokens = await tokensOf(client);
  const access = String(tokens["access_token"]);
  const none = await get(login, "/userinfo");
  refused(none, 401, "invalid_token");
  assert.match(String(none.headers["www-authenticate"]), /^Bearer realm="svc", DPoP /);
  for (const token of ["junk", tokens["id_token"], tokens["refresh_token"], `${access}x`]) {
    const answer = await userinfo(token);
    refused(answer, 401, "invalid_token");
    assert.match(String(answer.headers["www-authenticate"]), /error="invalid_token"/);
  }
  refused(await get(login, `/userinfo?access_token=${access}`), 401, "invalid_token");
  const twice = { form: { access_token: access }, headers: { authorization: `Bearer ${access}` } };
  refused(await post(login, "/userinfo", twice), 400, "invalid_request");
  const narrow = await tokensOf(client, { scope: "offline_access" });
  const answer = await userinfo(narrow["access_token"]);
  refused(answer, 403, "insufficient_scope");
  assert.match(String(answer.headers["www-authenticate"]), /error="insufficient_scope"/);
});

test("userinfo challenges also a call whose form cannot be read as one token", async () => {
  const access = String((await tokensOf(client))["access_token"]);
  const json = { form: { a: "b" }, headers: { "content-type": "application/json" } };
  const calls = [
    { form: { access_token: [access, access] } },
    { form: { access_token: "x".repeat(8193) } },
    { form: { access_token: "\0" } },
    json,
  ];
  for (const call of calls) {
    const answer = await post(login, "/userinfo", call);
    refused(answer, 400, "invalid_request");
    const challenge = String(answer.headers["www-authenticate"]);
    assert.match(challenge, /^Bearer realm="svc", error="invalid_request", error_description="/);
  }
  const elsewhere = await post(login, "/oauth2/token", json);
  assert.equal(elsewhere.headers["www-authenticate"], undefined);
});

test("a token that one of our keys signed for another purpose is no access token", async () => {
  const access = String((await tokensOf(client))["access_token"]);
  const claims = claimsOf(access);
  const keys = login.ctx.signingKeys;
  for (const purpose of ["login-es256", "wallet-es256"] as const)
    refused(await userinfo(signJwt(keys.current(purpose), "at+jwt", claims)), 401, "invalid_token");
  refused(
    await userinfo(signJwt(keys.current("login-rs256"), "JWT", claims)),
    401,
    "invalid_token",
  );
  refused(
    await userinfo(signJwt(keys.current("login-rs256"), "logout+jwt", claims)),
    401,
    "invalid_token",
  );
  const header = Buffer.from('{"alg":"none","typ":"at+jwt"}').toString("base64url");
  refused(await userinfo(`${header}.${access.split(".")[1]}.AAAA`), 401, "invalid_token");
});

test("a token whose signature is spelled in another way is none, though it says the same", async () => {
  const token = String((await tokensOf(client))["access_token"]);
  const spelled = token.slice(0, -1) + String.fromCharCode(token.charCodeAt(token.length - 1) + 1);
  const [one, another] = [token, spelled].map((text) =>
    Buffer.from(text.split(".")[2] ?? "", "base64url"),
  );
  assert.deepEqual(another, one);
  assert.equal((await userinfo(token)).status, 200);
  assert.equal((await userinfo(spelled)).status, 401);
  assert.deepEqual((await introspect(client, spelled)).body, { active: false });
});

test("an access token ends after its hour", async () => {
  const tokens = await tokensOf(client);
  login.clock.advance(3599);
  assert.equal((await userinfo(tokens["access_token"])).status, 200);
  login.clock.advance(1);
  refused(await userinfo(tokens["access_token"]), 401, "invalid_token");
  assert.deepEqual((await introspect(client, tokens["access_token"])).body, { active: false });
});

test("revoking any token of a family ends all of it; unknown and foreign ones change nothing", async () => {
  const headers = { authorization: client.basic };
  for (const name of ["access_token", "refresh_token"]) {
    const tokens = await tokensOf(client);
    const form = { token: String(tokens[name]) };
    const foreign = await post(login, "/oauth2/revoke", {
      form,
      headers: { authorization: other.basic },
    });
    assert.deepEqual([foreign.status, foreign.text], [200, ""]);
    assert.equal((await userinfo(tokens["access_token"])).status, 200);
    const { calls, answer } = await callsOf(async () =>
      post(login, "/oauth2/revoke", { form, headers }),
    );
    assert.deepEqual([calls, answer.status, answer.text], [1, 200, ""]);
    refused(await userinfo(tokens["access_token"]), 401, "invalid_token");
    refused(await refresh(login, client, tokens["refresh_token"]), 400, "invalid_grant");
  }
  assert.equal(
    (await post(login, "/oauth2/revoke", { form: { token: "junk" }, headers })).status,
    200,
  );
  refused(await post(login, "/oauth2/revoke", { form: { token: "junk" } }), 401, "invalid_client");
  refused(await post(login, "/oauth2/revoke", { form: {}, headers }), 400, "invalid_request");
});

test("a public client revokes its own tokens", async () => {
  const spa = await addClient(login, { method: "none" });
  const code = await addCode(login, spa);
  const given = { ...code, form: { client_id: spa.id }, headers: { authorization: undefined } };
  const tokens = (await redeem(login, spa, given)).body;
  const form = { token: String(tokens["access_token"]), client_id: spa.id };
  assert.equal((await post(login, "/oauth2/revoke", { form })).status, 200);
  refused(await userinfo(tokens["access_token"]), 401, "invalid_token");
});

test("a disabled client's tokens are no good", async () => {
  const gone = await addClient(login, { audiences: ["https://api.example.com"] });
  const tokens = await tokensOf(gone, { audience: ["https://api.example.com"] });
  await disableTestClient(login.ctx.db, gone.id);
  login.clock.advance(61);
  refused(await userinfo(tokens["access_token"]), 401, "invalid_token");
  assert.deepEqual((await introspect(api, tokens["access_token"])).body, { active: false });
});

test("a refresh token that was revoked or has run out is inactive", async () => {
  const revoked = await tokensOf(client);
  const form = { token: String(revoked["access_token"]) };
  await post(login, "/oauth2/revoke", { form, headers: { authorization: client.basic } });
  assert.deepEqual((await introspect(client, revoked["refresh_token"])).body, { active: false });
  const idle = await tokensOf(client);
  login.clock.advance(30 * 86_400);
  assert.deepEqual((await introspect(client, idle["refresh_token"])).body, { active: false });
});

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, test } from "node:test";
import { createLocalJWKSet, jwtVerify } from "jose";
import { untilAvailable } from "../../../../test/try-again.ts";
import { endSession } from "../session/session-end.ts";
import { dumpTestFamilies, listTestFamilies, restoreTestFamilies } from "../test-login-store.ts";
import {
  addClient,
  addCode,
  type Answer,
  claimsOf,
  familyStateOf,
  get,
  openTestLogin,
  post,
  redeem,
  refresh,
  refreshAs,
  refused,
  type TestClient,
  type TestLogin,
  user,
} from "../test-login.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const client = await addClient(login);

/** Statements that an operation takes, once the client is known. */
async function callsOf(on: TestLogin, work: () => Promise<unknown>): Promise<number> {
  await on.ctx.clients.find(client.id);
  const before = on.ctx.db.callsTotal;
  await work();
  return on.ctx.db.callsTotal - before;
}

async function tokensOf(
  on: TestLogin,
  of: TestClient,
  request = {},
): Promise<Record<string, unknown>> {
  const answer = await redeem(on, of, await addCode(on, of, request));
  assert.equal(answer.status, 200, answer.text);
  return answer.body;
}

test("a code yields the documented token response in one database call", async () => {
  const code = await addCode(login, client, {
    scope: "openid offline offline_access",
    audience: ["https://api.example.com"],
  });
  let answer: Answer | undefined;
  assert.equal(await callsOf(login, async () => (answer = await redeem(login, client, code))), 1);
  assert.ok(answer);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.headers["cache-control"], "no-store");
  const { access_token: access, id_token: id, refresh_token: token, ...rest } = answer.body;
  assert.deepEqual(rest, {
    token_type: "bearer",
    expires_in: 3600,
    scope: "openid offline offline_access",
  });
  assert.match(String(token), /^[\w-]{22}\.0\.[\w-]{43}\.[\w-]{22}$/);

  const keys = createLocalJWKSet(JSON.parse((await get(login, "/.well-known/jwks.json")).text));
  const currentDate = new Date(login.clock.nowMs());
  const options = { issuer: "http://localhost:4000", algorithms: ["RS256"], currentDate };
  const verified = await jwtVerify(String(access), keys, {
    ...options,
    typ: "at+jwt",
    audience: "https://api.example.com",
  });
  const now = login.clock.now();
  const { jti, ...claims } = verified.payload;
  assert.match(String(jti), /^[\w-]{22}\.[\w-]{16}$/);
  assert.deepEqual(claims, {
    iss: "http://localhost:4000",
    sub: `svcid:${user}`,
    aud: ["https://api.example.com"],
    client_id: client.id,
    scope: "openid offline offline_access",
    scp: ["openid", "offline", "offline_access"],
    iat: now,
    nbf: now,
    exp: now + 3600,
    ext: {},
  });
  const idToken = await jwtVerify(String(id), keys, {
    ...options,
    typ: "JWT",
    audience: client.id,
  });
  const hash = createHash("sha256").update(String(access)).digest().subarray(0, 16);
  assert.deepEqual(idToken.payload, {
    iss: "http://localhost:4000",
    sub: `svcid:${user}`,
    aud: [client.id],
    exp: now + 3600,
    iat: now,
    auth_time: now,
    nonce: "n-1",
    at_hash: hash.toString("base64url"),
    sid: code.sessionId,
    acr: "urn:svc:acr:qr",
    amr: ["pop"],
  });
});

test("without an audience aud is the client, and without offline there is no refresh token", async () => {
  const tokens = await tokensOf(login, client, { scope: "openid" });
  assert.deepEqual(claimsOf(tokens["access_token"])["aud"], [client.id]);
  assert.equal(tokens["refresh_token"], undefined);
});

test("a client may have its id tokens signed with ES256; access tokens stay RS256", async () => {
  const es = await addClient(login, { idTokenAlgorithm: "ES256" });
  const tokens = await tokensOf(login, es);
  const keys = createLocalJWKSet(JSON.parse((await get(login, "/.well-known/jwks.json")).text));
  const currentDate = new Date(login.clock.nowMs());
  await jwtVerify(String(tokens["id_token"]), keys, { algorithms: ["ES256"], currentDate });
  await jwtVerify(String(tokens["access_token"]), keys, { algorithms: ["RS256"], currentDate });
});

test("a refresh rotates the token in one database call and repeats no nonce", async () => {
  const first = await tokensOf(login, client);
  login.clock.advance(1000);
  let answer: Answer | undefined;
  const calls = await callsOf(
    login,
    async () => (answer = await refresh(login, client, first["refresh_token"])),
  );
  assert.equal(calls, 1);
  assert.ok(answer);
  assert.equal(answer.status, 200, answer.text);
  assert.match(String(answer.body["refresh_token"]), /^[\w-]{22}\.1\./);
  const [old, fresh] = [claimsOf(first["id_token"]), claimsOf(answer.body["id_token"])];
  assert.equal(fresh["nonce"], undefined);
  for (const name of ["sub", "aud", "auth_time", "sid", "acr"])
    assert.deepEqual(fresh[name], old[name]);
  assert.equal(fresh["iat"], login.clock.now());
});

test("a repeat within the grace gets the same successor with fresh tokens", async () => {
  const first = await tokensOf(login, client);
  const second = await refresh(login, client, first["refresh_token"]);
  login.clock.advance(9);
  const again = await refresh(login, client, first["refresh_token"]);
  assert.equal(again.status, 200);
  assert.equal(again.body["refresh_token"], second.body["refresh_token"]);
  assert.notEqual(again.body["access_token"], second.body["access_token"]);
  assert.equal((await refresh(login, client, again.body["refresh_token"])).status, 200);
});

test("a sweep deletes no newer successor that another process made", async () => {
  await using other = await openTestLogin({ with: login });
  const first = await tokensOf(login, client);
  const second = await refresh(login, client, first["refresh_token"]);
  login.clock.advance(6);
  const third = await refresh(other, client, second.body["refresh_token"]);
  login.clock.advance(5);
  await login.ctx.successors.sweep();
  const again = await refresh(login, client, second.body["refresh_token"]);
  assert.equal(again.body["refresh_token"], third.body["refresh_token"], again.text);
});

test("after the grace a reuse revokes the family, and so does a token before the last within it", async () => {
  const first = await tokensOf(login, client);
  const second = await refresh(login, client, first["refresh_token"]);
  login.clock.advance(10);
  refused(await refresh(login, client, first["refresh_token"]), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, first["access_token"]), "reuse");
  refused(await refresh(login, client, second.body["refresh_token"]), 400, "invalid_grant");

  const other = await tokensOf(login, client);
  const next = await refresh(login, client, other["refresh_token"]);
  await refresh(login, client, next.body["refresh_token"]);
  refused(await refresh(login, client, other["refresh_token"]), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, other["access_token"]), "reuse");
});

test("a reuse revokes the family whatever else it asks; a repeat or the newest token that asks too much is only refused", async () => {
  const tooMuch = [{ scope: "openid offline" }, { resource: "https://other.example.com" }];
  const request = { scope: "openid offline_access" };
  for (const form of tooMuch) {
    const first = await tokensOf(login, client, request);
    const old = { refresh_token: String(first["refresh_token"]), ...form };
    assert.equal((await refreshAs(login, client, old)).status, 400);
    const second = await refresh(login, client, first["refresh_token"]);
    assert.equal((await refreshAs(login, client, old)).status, 400);
    assert.equal(await familyStateOf(login, first["access_token"]), null);
    await refresh(login, client, second.body["refresh_token"]);
    refused(await refreshAs(login, client, old), 400, "invalid_grant");
    assert.equal(await familyStateOf(login, first["access_token"]), "reuse");
  }
});

test("a refresh token from after a backup ends its login once that is restored, and with it the copies from before", async () => {
  const first = await tokensOf(login, client);
  const backup = await dumpTestFamilies(login.ctx.db);
  const since = await tokensOf(login, client);
  const second = await refresh(login, client, first["refresh_token"]);
  await restoreTestFamilies(login.ctx.db, backup);
  refused(await refresh(login, client, since["refresh_token"]), 400, "invalid_grant");
  refused(await refresh(login, client, second.body["refresh_token"]), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, first["access_token"]), "reuse");
  refused(await refresh(login, client, first["refresh_token"]), 400, "invalid_grant");
});

test("50 refreshes at once within the grace all get the one successor", async () => {
  await using second = await openTestLogin({ with: login, connections: 10 });
  const first = await tokensOf(login, client);
  const all = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      untilAvailable(async () =>
        refresh(index % 2 === 0 ? login : second, client, first["refresh_token"]),
      ),
    ),
  );
  assert.ok(all.every((answer) => answer.status === 200));
  assert.equal(new Set(all.map((answer) => answer.body["refresh_token"])).size, 1);
});

test("50 refreshes at once without a grace succeed once and end revoked", async () => {
  const environment = { REFRESH_GRACE_SECONDS: "0" };
  await using one = await openTestLogin({ with: login, environment, connections: 10 });
  await using two = await openTestLogin({ with: login, environment, connections: 10 });
  const first = await tokensOf(login, client);
  const all = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      untilAvailable(async () =>
        refresh(index % 2 === 0 ? one : two, client, first["refresh_token"]),
      ),
    ),
  );
  assert.equal(all.filter((answer) => answer.status === 200).length, 1);
  assert.equal(await familyStateOf(login, first["access_token"]), "reuse");
});

test("a made-up refresh token revokes nothing and asks no database", async () => {
  const first = await tokensOf(login, client);
  const [family, , secret, mac] = String(first["refresh_token"]).split(".");
  const forged = `${family}.0.${"A".repeat(43)}.${mac}`;
  const later = `${family}.7.${secret}.${mac}`;
  const calls = await callsOf(login, async () => {
    refused(await refresh(login, client, forged), 400, "invalid_grant");
    refused(await refresh(login, client, later), 400, "invalid_grant");
    refused(await refresh(login, client, "junk"), 400, "invalid_grant");
  });
  assert.equal(calls, 0);
  assert.equal((await refresh(login, client, first["refresh_token"])).status, 200);
});

test("another client's refresh token is unknown and stays good", async () => {
  const first = await tokensOf(login, client);
  const other = await addClient(login);
  refused(await refresh(login, other, first["refresh_token"]), 400, "invalid_grant");
  assert.equal((await refresh(login, client, first["refresh_token"])).status, 200);
});

test("scope may be narrowed for the access token, never widened", async () => {
  const first = await tokensOf(login, client, { scope: "openid offline_access" });
  refused(
    await refreshAs(login, client, {
      refresh_token: String(first["refresh_token"]),
      scope: "openid offline",
    }),
    400,
    "invalid_scope",
  );
  const narrow = await refreshAs(login, client, {
    refresh_token: String(first["refresh_token"]),
    scope: "openid",
  });
  assert.equal(narrow.body["scope"], "openid");
  assert.deepEqual(claimsOf(narrow.body["access_token"])["scp"], ["openid"]);
  const wide = await refresh(login, client, narrow.body["refresh_token"]);
  assert.equal(wide.body["scope"], "openid offline_access");
  refused(
    await refreshAs(login, client, {
      refresh_token: String(wide.body["refresh_token"]),
      resource: "https://api.example.com",
    }),
    400,
    "invalid_target",
  );
});

test("a refresh for a scope of spaces alone is refused and keeps its token", async () => {
  const { refresh_token: token } = await tokensOf(login, client);
  for (const scope of [" ", "   "]) {
    const form = { refresh_token: String(token), scope };
    refused(await refreshAs(login, client, form), 400, "invalid_scope");
  }
  const whole = await refreshAs(login, client, { refresh_token: String(token), scope: "" });
  assert.equal(whole.body["scope"], "openid offline_access");
});

test("a refresh token dies after 30 idle days and its family after a year", async () => {
  await using own = await openTestLogin();
  const shop = await addClient(own);
  const idle = await tokensOf(own, shop);
  own.clock.advance(30 * 86_400);
  refused(await refresh(own, shop, idle["refresh_token"]), 400, "invalid_grant");

  let token = (await tokensOf(own, shop))["refresh_token"];
  for (let month = 0; month < 12; month += 1) {
    own.clock.advance(29 * 86_400);
    const next = await refresh(own, shop, token);
    assert.equal(next.status, 200);
    token = next.body["refresh_token"];
  }
  own.clock.advance(17 * 86_400 - 600);
  const last = await refresh(own, shop, token);
  assert.equal(last.body["expires_in"], 600);
  own.clock.advance(600);
  refused(await refresh(own, shop, last.body["refresh_token"]), 400, "invalid_grant");
});

test("client credentials yield a token of the client alone, in one call", async () => {
  const form = { grant_type: "client_credentials", audience: "https://api.example.com" };
  let answer: Answer | undefined;
  const headers = { authorization: client.basic };
  const calls = await callsOf(
    login,
    async () => (answer = await post(login, "/oauth2/token", { form, headers })),
  );
  assert.equal(calls, 1);
  assert.ok(answer);
  const { access_token: access, ...rest } = answer.body;
  assert.deepEqual(rest, { token_type: "bearer", expires_in: 3600, scope: "" });
  const claims = claimsOf(access);
  assert.deepEqual(
    [claims["sub"], claims["aud"], claims["scp"]],
    [client.id, ["https://api.example.com"], []],
  );
  const userinfo = await get(login, "/userinfo", { authorization: `Bearer ${String(access)}` });
  refused(userinfo, 403, "insufficient_scope");
});

test("client credentials are refused to public clients, with scopes, and for foreign audiences", async () => {
  const spa = await addClient(login, { method: "none" });
  const grant = { grant_type: "client_credentials" };
  const headers = { authorization: client.basic };
  refused(
    await post(login, "/oauth2/token", { form: { ...grant, client_id: spa.id } }),
    400,
    "unauthorized_client",
  );
  for (const scope of ["openid", "offline", "offline_access", "email"])
    refused(
      await post(login, "/oauth2/token", { form: { ...grant, scope }, headers }),
      400,
      "invalid_scope",
    );
  refused(
    await post(login, "/oauth2/token", {
      form: { ...grant, audience: "https://x.example" },
      headers,
    }),
    400,
    "invalid_target",
  );
  const both = { ...grant, audience: "https://api.example.com", resource: "https://x.example" };
  refused(await post(login, "/oauth2/token", { form: both, headers }), 400, "invalid_target");
});

test("a token request whose body is no form, or is missing, is refused", async () => {
  const headers = { authorization: client.basic, "content-type": "application/json" };
  refused(await post(login, "/oauth2/token", { form: {}, headers }), 400, "invalid_request");
  refused(
    await post(login, "/oauth2/token", { headers: { ...headers, "content-type": "text/plain" } }),
    400,
    "invalid_request",
  );
  refused(
    await post(login, "/oauth2/token", { headers: { authorization: client.basic } }),
    400,
    "invalid_request",
  );
});

test("a family that was revoked keeps no sealed successor, however it was revoked", async () => {
  await using own = await openTestLogin();
  const shop = await addClient(own);
  const headers = { authorization: shop.basic };
  const start = async () => {
    const code = await addCode(own, shop);
    const first = (await redeem(own, shop, code)).body;
    const second = (await refresh(own, shop, first["refresh_token"])).body;
    return { ...code, first: first["refresh_token"], second: String(second["refresh_token"]) };
  };
  const reused = await start();
  await refresh(own, shop, reused.second);
  refused(await refresh(own, shop, reused.first), 400, "invalid_grant");
  await post(own, "/oauth2/revoke", { form: { token: (await start()).second }, headers });
  const { sessionId } = await start();
  await own.ctx.db.transaction(async (tx) => endSession(tx, sessionId, own.clock.now()));
  const kept = (await listTestFamilies(own.ctx.db)).map((row) => row.hasSuccessor);
  assert.deepEqual(kept, [false, false, false]);
});

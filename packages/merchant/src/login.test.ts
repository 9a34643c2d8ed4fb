import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { after, before, beforeEach, describe, test } from "node:test";
import { inspect } from "node:util";

import {
  alice,
  audience,
  clientId,
  clientSecret,
  openFakeIssuer,
  subject,
  type FakeIssuer,
} from "../test/fake-issuer.ts";
import {
  MerchantError,
  type MerchantErrorCode,
  openMerchant,
  type Merchant,
  type MerchantOptions,
  type PendingLogin,
} from "./index.ts";

const redirectUri = "http://localhost:4001/callback";

let fake: FakeIssuer;
let merchant: Merchant;

before(async () => {
  fake = await openFakeIssuer();
  merchant = open();
});
after(() => fake[Symbol.asyncDispose]());
beforeEach(() => {
  Object.assign(fake, {
    discovery: {},
    idToken: {},
    callback: {},
    refusal: undefined,
    tokenMembers: {},
    tokenAnswers: [],
    tokenRefusal: undefined,
  });
});

const open = (options: Partial<MerchantOptions> = {}) =>
  openMerchant({
    issuer: fake.url,
    clientId,
    clientSecret,
    redirectUri,
    audience,
    now: () => fake.now,
    ...options,
  });

/** Plays the browser between start and finish: the URL with which it comes back. */
async function visit(url: string): Promise<string> {
  const response = await fetch(url, { redirect: "manual" });
  return response.headers.get("location") ?? "";
}

async function logIn(who = merchant) {
  const { url, ...pending } = await who.login.start();
  return who.login.finish(await visit(url), pending);
}

test("a login starts with the request of the service document", async () => {
  const { url, state, nonce, codeVerifier } = await merchant.login.start();
  assert.ok(url.startsWith(`${fake.url}/oauth2/auth?`));
  assert.deepEqual(Object.fromEntries(new URL(url).searchParams), {
    client_id: clientId,
    redirect_uri: redirectUri,
    response_type: "code",
    scope: "openid offline offline_access",
    state,
    nonce,
    code_challenge: createHash("sha256").update(codeVerifier).digest("base64url"),
    code_challenge_method: "S256",
    audience,
    prompt: "consent",
    access_type: "offline",
  });
  assert.match(codeVerifier, /^[\w-]{43}$/);
  const other = await merchant.login.start();
  assert.equal(
    new Set([state, nonce, codeVerifier, other.state, other.nonce, other.codeVerifier]).size,
    6,
  );
});

test("every wish of a login reaches the broker", async () => {
  const state = "0123456789abcdefghijkl";
  const { url } = await merchant.login.start({
    scope: "openid business",
    prompt: null,
    state,
    uiLocales: "de en",
    acrValues: "urn:svc:acr:qr-near",
    maxAge: 60,
    loginHint: alice,
  });
  const query = new URL(url).searchParams;
  assert.equal(query.get("scope"), "openid business");
  assert.equal(query.has("prompt"), false);
  assert.equal(query.get("state"), state);
  assert.equal(query.get("ui_locales"), "de en");
  assert.equal(query.get("acr_values"), "urn:svc:acr:qr-near");
  assert.equal(query.get("max_age"), "60");
  assert.equal(query.get("login_hint"), alice);
  await assert.rejects(merchant.login.start({ state: "guessable" }), {
    code: "configuration_invalid",
    reason: "state",
  });
});

test("a login ends with a verified identity and its tokens", async () => {
  const login = await logIn();
  assert.equal(login.user, alice);
  assert.equal(login.subject, subject);
  assert.equal(login.expiresAt, fake.now + 3600);
  assert.equal(login.claims["acr"], "urn:svc:acr:qr-near");
  assert.ok(login.refreshToken);
  const { client_id: sentId, client_secret: sentSecret } = Object.fromEntries(
    fake.calls.at(-1)?.form ?? [],
  );
  assert.equal(sentId ?? sentSecret, undefined, "the secret goes in the header alone");
});

test("a browser-only client proves itself by its verifier alone", async () => {
  fake.idToken = { claims: { aud: "browser-client" } };
  const options = {
    issuer: fake.url,
    clientId: "browser-client",
    redirectUri,
    now: () => fake.now,
  };
  const login = await logIn(openMerchant(options));
  assert.equal(login.user, alice);
});

test("an API verifies the access token that the shop sends along", async () => {
  const { accessToken } = await logIn();
  const { user, scope } = await merchant.verifyAccessToken(accessToken, {
    audience,
    now: fake.now,
  });
  assert.equal(user, alice);
  assert.ok(scope.includes("openid"));
});

describe("callbacks that do not fit their login are refused", () => {
  let pending: PendingLogin;
  let callbackUrl: URL;
  beforeEach(async () => {
    const { url, ...rest } = await merchant.login.start();
    pending = rest;
    callbackUrl = new URL(await visit(url));
  });
  const finish = () => merchant.login.finish(callbackUrl, pending);

  test("a callback with the state of another browser's login is refused", async () => {
    callbackUrl.searchParams.set("state", (await merchant.login.start()).state);
    await assert.rejects(finish(), { code: "state_mismatch" });
  });

  test("a callback without a state is refused", async () => {
    callbackUrl.searchParams.delete("state");
    await assert.rejects(finish(), { code: "state_mismatch" });
  });

  test("a callback is refused when nothing is known of its login", async () => {
    const lost = undefined as unknown as typeof pending;
    await assert.rejects(merchant.login.finish(callbackUrl, lost), { code: "state_mismatch" });
  });

  test("a callback is refused when the pending login lost its nonce, verifier or state", async () => {
    for (const lost of [{ nonce: "" }, { codeVerifier: "" }])
      await assert.rejects(merchant.login.finish(callbackUrl, { ...pending, ...lost }), {
        code: "state_mismatch",
      });
    callbackUrl.searchParams.set("state", "");
    await assert.rejects(merchant.login.finish(callbackUrl, { ...pending, state: "" }), {
      code: "state_mismatch",
    });
  });

  test("a callback with another broker's issuer, or none, is refused before its code goes anywhere", async () => {
    const requests = fake.countOf("/oauth2/token");
    callbackUrl.searchParams.set("iss", "https://evil.example");
    await assert.rejects(finish(), { code: "issuer_mismatch" });
    callbackUrl.searchParams.delete("iss");
    await assert.rejects(finish(), { code: "issuer_mismatch" });
    assert.equal(fake.countOf("/oauth2/token"), requests);
  });

  test("a callback with one parameter twice is refused", async () => {
    callbackUrl.searchParams.append("code", "another");
    await assert.rejects(finish(), { code: "callback_invalid", reason: "code" });
  });

  test("a callback with a refusal beside a code is refused, and the code goes nowhere", async () => {
    const requests = fake.countOf("/oauth2/token");
    callbackUrl.searchParams.set("error", "access_denied");
    await assert.rejects(finish(), { code: "access_denied" });
    assert.equal(fake.countOf("/oauth2/token"), requests);
  });

  test("a callback that is no URL is refused", async () => {
    const finished = merchant.login.finish(`//[${callbackUrl.search}`, pending);
    await assert.rejects(finished, { code: "callback_invalid", reason: "url" });
  });

  test("a callback without a code is refused", async () => {
    callbackUrl.searchParams.set("code", "");
    await assert.rejects(finish(), { code: "callback_invalid", reason: "code" });
    callbackUrl.searchParams.delete("code");
    await assert.rejects(finish(), { code: "callback_invalid", reason: "code" });
  });

  test("a callback that is finished with the verifier of another login is refused", async () => {
    const { codeVerifier } = await merchant.login.start();
    await assert.rejects(merchant.login.finish(callbackUrl, { ...pending, codeVerifier }), {
      code: "grant_refused",
    });
  });

  test("a callback that is finished with the nonce of another login is refused", async () => {
    const { nonce } = await merchant.login.start();
    const finished = merchant.login.finish(callbackUrl, { ...pending, nonce });
    await assert.rejects(finished, { code: "token_refused", reason: "nonce" });
  });

  test("a callback is refused when its access token was exchanged on the way", async () => {
    fake.tokenMembers = { access_token: "another" };
    await assert.rejects(finish(), { code: "token_refused", reason: "at_hash" });
  });

  test("a callback that was finished is refused the second time", async () => {
    await finish();
    await assert.rejects(finish(), { code: "grant_refused" });
  });

  test("a callback is refused when the approval is older than was asked", async () => {
    fake.idToken = { claims: { auth_time: fake.now - 3600 } };
    const { url, ...asked } = await merchant.login.start({ maxAge: 60 });
    const finished = merchant.login.finish(await visit(url), asked);
    await assert.rejects(finished, { code: "token_refused", reason: "auth_time" });
  });
});

describe("what the broker says at the callback has a code", () => {
  const rows: Record<string, string> = {
    access_denied: "access_denied",
    login_required: "login_required",
    interaction_required: "login_required",
    temporarily_unavailable: "issuer_unreachable",
    invalid_target: "authorization_refused",
    constructor: "authorization_refused",
    "<script>": "authorization_refused",
  };
  for (const [refusal, code] of Object.entries(rows)) {
    test(`a callback with the error ${refusal} is a login error with the code ${code}`, async () => {
      fake.refusal = refusal;
      await assert.rejects(logIn(), (error) => {
        assert.ok(error instanceof MerchantError);
        assert.equal(error.code, code);
        assert.ok(!error.message.includes("<"), "text of a URL does not reach the log");
        assert.equal(error.explanation, `about ${refusal}`);
        return true;
      });
    });
  }
});

const json = (status: number, body: unknown) => ({ status, body: JSON.stringify(body) });

describe("what the token endpoint answers has a code", () => {
  const rows: Record<
    string,
    [
      answer: { status: number; body: string },
      expected: { code: MerchantErrorCode; reason?: string; explanation?: string },
    ]
  > = {
    "the refusal of a used code": [
      json(400, { error: "invalid_grant" }),
      { code: "grant_refused" },
    ],
    "the refusal of a wrong secret": [
      json(401, { error: "invalid_client" }),
      { code: "client_refused" },
    ],
    "any other refusal": [
      json(400, { error: "invalid_target", error_description: "no audience of this client" }),
      {
        code: "request_refused",
        reason: "invalid_target",
        explanation: "no audience of this client",
      },
    ],
    "a refusal without error": [{ status: 400, body: "<html>" }, { code: "response_invalid" }],
    "a failure": [json(503, { error: "temporarily_unavailable" }), { code: "issuer_unreachable" }],
    "an endless body": [{ status: 200, body: "x".repeat(300_000) }, { code: "issuer_unreachable" }],
    "an answer that is no JSON": [{ status: 200, body: "OK" }, { code: "response_invalid" }],
    "a JSON array": [json(200, []), { code: "response_invalid" }],
  };
  for (const [name, [answer, expected]] of Object.entries(rows)) {
    test(`${name} from the token endpoint is a login error with the code ${expected.code}`, async () => {
      fake.tokenAnswers.push(answer);
      await assert.rejects(logIn(), expected);
    });
  }

  const members: Record<string, unknown> = {
    access_token: undefined,
    id_token: "",
    token_type: "DPoP",
    expires_in: "3600",
    refresh_token: 7,
  };
  for (const [name, value] of [...Object.entries(members), ["expires_in", 0] as const]) {
    test(`a token answer with ${name === "access_token" ? "no" : "an invalid"} ${name} is an invalid response that names it`, async () => {
      fake.tokenMembers = { [name]: value };
      await assert.rejects(logIn(), { code: "response_invalid", reason: name });
    });
  }

  test("a token answer whose type is no spelling of Bearer is an invalid response", async () => {
    for (const type of ["mac", "N_A", "bearer ", "DPoP"]) {
      fake.tokenMembers = { token_type: type };
      await assert.rejects(logIn(), { code: "response_invalid", reason: "token_type" }, type);
    }
    for (const type of ["bearer", "Bearer"]) {
      fake.tokenMembers = { token_type: type };
      assert.equal((await logIn()).user, alice);
    }
  });

  test("a token endpoint that nobody answers at is an unreachable issuer", async () => {
    fake.discovery = { token_endpoint: "http://localhost:1/token" };
    await assert.rejects(logIn(open()), { code: "issuer_unreachable" });
  });
});

test("a redirect of the token endpoint is not followed, so the secret stays where it was sent", async () => {
  fake.tokenAnswers.push({ status: 307, body: "", location: `${fake.url}/elsewhere` });
  await assert.rejects(logIn(), { code: "issuer_unreachable" });
  assert.equal(fake.countOf("/elsewhere"), 0);
});

test("a refresh brings new tokens for the same person", async () => {
  const login = await logIn();
  fake.now += 3000;
  const fresh = await merchant.login.refresh(login.refreshToken ?? "", { subject: login.subject });
  assert.equal(fresh.user, alice);
  assert.equal(fresh.expiresAt, fake.now + 3600);
  assert.notEqual(fresh.refreshToken, login.refreshToken);
  const again = merchant.login.refresh(login.refreshToken ?? "", { subject: login.subject });
  await assert.rejects(again, { code: "grant_refused" });
});

test("a refresh whose access token was exchanged on the way is refused", async () => {
  const { refreshToken = "" } = await logIn();
  fake.tokenMembers = { access_token: "another" };
  await assert.rejects(merchant.login.refresh(refreshToken, { subject }), {
    code: "token_refused",
    reason: "at_hash",
  });
});

test("a refresh that answers for another person is refused", async () => {
  const { refreshToken = "" } = await logIn();
  fake.idToken = { claims: { sub: `svcid:0x${"e".repeat(40)}` } };
  await assert.rejects(merchant.login.refresh(refreshToken, { subject }), {
    code: "subject_changed",
  });
});

test("userinfo names the person behind an access token", async () => {
  const { accessToken } = await logIn();
  assert.equal((await merchant.login.userinfo(accessToken)).subject, subject);
  assert.equal((await merchant.login.userinfo(accessToken, { subject })).subject, subject);
  await assert.rejects(merchant.login.userinfo(accessToken, { subject: "svcid:0x00" }), {
    code: "subject_changed",
  });
  await assert.rejects(merchant.login.userinfo("expired"), { code: "access_token_refused" });
});

test("only a 401 of userinfo says that the access token is over", async () => {
  const { accessToken } = await logIn();
  fake.tokenRefusal = { status: 403, error: "insufficient_scope" };
  await assert.rejects(merchant.login.userinfo(accessToken), {
    code: "request_refused",
    reason: "insufficient_scope",
  });
  fake.tokenRefusal = { status: 404 };
  await assert.rejects(merchant.login.userinfo(accessToken), { code: "response_invalid" });
});

test("what is no bearer token is refused before it is sent, and no error repeats it", async () => {
  for (const token of ["", "secret token", "secret\ntoken", "secret\u20ac", "=secret"]) {
    const refusal = await merchant.login.userinfo(token).catch((error: unknown) => error);
    assert.ok(refusal instanceof MerchantError);
    assert.equal(refusal.code, "access_token_refused");
    assert.doesNotMatch(inspect(refusal), /secret/);
  }
});

const namingNobody: typeof fetch = async (url, init) => {
  const { href } = new URL(url instanceof Request ? url.url : url);
  return href.endsWith("/userinfo") ? Response.json({ email: "a@b.example" }) : fetch(url, init);
};

test("userinfo that names nobody is no answer", async () => {
  const { accessToken } = await logIn();
  const own = open({ fetch: namingNobody });
  await assert.rejects(own.login.userinfo(accessToken), {
    code: "response_invalid",
    reason: "sub",
  });
});

test("a broker that has too much to do says when to come again, and nothing is over", async () => {
  const { url, ...pending } = await merchant.login.start();
  const callbackUrl = await visit(url);
  const { accessToken, refreshToken = "" } = await logIn();
  fake.tokenRefusal = { status: 429, error: "temporarily_unavailable" };
  for (const call of [
    async () => merchant.login.finish(callbackUrl, pending),
    async () => merchant.login.refresh(refreshToken, { subject }),
    async () => merchant.login.userinfo(accessToken),
    async () => merchant.login.revoke(refreshToken),
  ])
    await assert.rejects(call(), { code: "rate_limited", retryAfterSeconds: 7 });
  fake.tokenRefusal = undefined;
  await merchant.login.refresh(refreshToken, { subject });
  await merchant.login.finish(callbackUrl, pending);
});

test("a revoked refresh token brings nothing", async () => {
  const { refreshToken = "" } = await logIn();
  await merchant.login.revoke(refreshToken);
  await assert.rejects(merchant.login.refresh(refreshToken, { subject }), {
    code: "grant_refused",
  });
  fake.tokenRefusal = { status: 400, error: "invalid_client" };
  await assert.rejects(merchant.login.revoke(refreshToken), { code: "client_refused" });
  fake.tokenRefusal = undefined;
});

test("a logout leads to the broker, and back to the origin of the shop alone", async () => {
  const idToken = "eyJ.eyJ.sig";
  const url = await merchant.login.logoutUrl({
    idToken,
    postLogoutRedirectUri: "http://localhost:4001/",
    state: "s",
  });
  assert.ok(url.startsWith(`${fake.url}/oauth2/sessions/logout?`));
  assert.deepEqual(Object.fromEntries(new URL(url).searchParams), {
    client_id: clientId,
    id_token_hint: idToken,
    post_logout_redirect_uri: "http://localhost:4001/",
    state: "s",
  });
  const elsewhere = [
    "https://evil.example/",
    "//evil.example",
    "http://localhost:4001@evil.example/",
    "http://localhost:4001.evil.example/",
    "http://localhost:4002/",
    "https://localhost:4001/",
    "javascript:alert(1)",
    "/relative",
    "",
  ];
  for (const postLogoutRedirectUri of elsewhere) {
    await assert.rejects(merchant.login.logoutUrl({ idToken, postLogoutRedirectUri }), {
      code: "redirect_refused",
    });
  }
});

test("options that cannot work are refused by name", () => {
  const rows: [Partial<MerchantOptions>, string][] = [
    [{ issuer: "http://broker.example" }, "issuer"],
    [{ issuer: `${fake.url}/` }, "issuer"],
    [{ issuer: "broker" }, "issuer"],
    [{ redirectUri: "http://shop.example/callback" }, "redirectUri"],
    [{ redirectUri: "https://shop.example/callback#x" }, "redirectUri"],
    [{ clientId: "" }, "clientId"],
    [{ clientSecret: "" }, "clientSecret"],
  ];
  for (const [options, reason] of rows) {
    assert.throws(() => open(options), { code: "configuration_invalid", reason });
  }
});

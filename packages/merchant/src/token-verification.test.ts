import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";

import { inspect } from "node:util";
import {
  exportSPKI,
  importJWK,
  SignJWT,
  UnsecuredJWT,
  type CryptoKey,
  type JWTPayload,
} from "jose";

import {
  audience,
  alice,
  clientId,
  hashOf,
  logoutEvent,
  makeKey,
  openFakeIssuer,
  subject,
  type Changes,
  type FakeIssuer,
} from "../test/fake-issuer.ts";
import { MerchantError, openMerchant, type Merchant } from "./index.ts";

const accessToken = "an-access-token";
const business = {
  id: `0x${"b".repeat(40)}`,
  name: "Acme AG",
  domain: "acme.example",
  verified: true,
  status: "active",
};

let fake: FakeIssuer;
let merchant: Merchant;

before(async () => {
  fake = await openFakeIssuer();
  merchant = openFor(fake);
});
after(() => fake[Symbol.asyncDispose]());

const openFor = (issuer: FakeIssuer, now = () => issuer.now) =>
  openMerchant({
    issuer: issuer.url,
    clientId,
    redirectUri: "http://localhost:4001/callback",
    now,
  });

const refused = (reason: string) => (error: unknown) => {
  assert.ok(error instanceof MerchantError, String(error));
  assert.equal(error.code, "token_refused", error.message);
  assert.equal(error.reason, reason, error.message);
  return true;
};

const idClaims = (): JWTPayload => ({
  ...fake.idClaims(),
  nonce: "n-1",
  at_hash: hashOf(accessToken),
});
const signId = (changes?: Changes) => fake.sign("JWT", idClaims(), changes);
const verifyId = (jwt: string) =>
  merchant.verifyIdToken(jwt, { nonce: "n-1", accessToken, now: fake.now });

const signAccess = (changes?: Changes) => fake.sign("at+jwt", fake.accessClaims(), changes);
const verifyAccess = (jwt: string) => merchant.verifyAccessToken(jwt, { audience, now: fake.now });

const readLogout = async (claims: object) =>
  verifyLogout(await signLogout({ claims: { toe: 7, ...claims } }));
const signLogout = (changes?: Changes) => fake.sign("logout+jwt", fake.logoutClaims(), changes);
const verifyLogout = (jwt: string) => merchant.login.verifyLogoutToken(jwt, { now: fake.now });

/** One row per way in which an id token can be bad: what is changed, and the check that refuses it. */
const badIdTokens: Record<
  string,
  { reason: string; change?: Changes; jwt?: () => Promise<string> | string }
> = {
  "the form of no JWT": { reason: "form", jwt: () => "not.a.jwt" },
  "no text at all": { reason: "form", jwt: () => "" },
  "alg none and no typ": { reason: "typ", jwt: () => new UnsecuredJWT(idClaims()).encode() },
  "alg none under the right typ and kid": {
    reason: "alg",
    jwt: async () => {
      const [, claims] = (await signId()).split(".");
      const header = Buffer.from(
        JSON.stringify({ alg: "none", typ: "JWT", kid: "rsa-1" }),
      ).toString("base64url");
      return `${header}.${claims}.`;
    },
  },
  "an HS256 signature keyed with the public key": { reason: "alg", jwt: () => signWithPublicKey() },
  "an algorithm that the broker does not announce": {
    reason: "alg",
    jwt: async () => signId({ key: { ...(await makeKey("rsa-1", "PS256")) } }),
  },
  "a signature by a key of the same name": {
    reason: "signature",
    jwt: async () => signId({ key: await makeKey("rsa-1") }),
  },
  "claims exchanged after signing": {
    reason: "signature",
    jwt: async () => {
      const [header, , signature] = (await signId()).split(".");
      const claims = Buffer.from(
        JSON.stringify({ ...idClaims(), sub: `svcid:0x${"e".repeat(40)}` }),
      );
      return `${header}.${claims.toString("base64url")}.${signature}`;
    },
  },
  "a kid that the broker does not know": {
    reason: "kid",
    jwt: async () => signId({ key: await makeKey("rsa-9") }),
  },
  "no kid": { reason: "kid", change: { header: { kid: undefined } } },
  "an ES256 key named by an RS256 token": { reason: "kid", change: { header: { kid: "ec-1" } } },
  "a critical header that the library does not understand": {
    reason: "form",
    jwt: () => withCriticalHeader(),
  },
  "the typ of an access token": {
    reason: "typ",
    jwt: () => fake.sign("at+jwt", fake.accessClaims()),
  },
  "the typ of an access token for the client itself": {
    reason: "typ",
    jwt: () => fake.sign("at+jwt", { ...idClaims(), client_id: clientId }),
  },
  "the typ of a logout token": {
    reason: "typ",
    jwt: () => fake.sign("logout+jwt", fake.logoutClaims()),
  },
  "no typ": { reason: "typ", change: { header: { typ: undefined } } },
  "a typ that is no text": {
    reason: "typ",
    jwt: async () => `${Buffer.from('{"typ":1,"kid":"rsa-1"}').toString("base64url")}.e30.AA`,
  },
  "another issuer": { reason: "iss", change: { claims: { iss: "https://evil.example" } } },
  "no issuer": { reason: "iss", change: { claims: { iss: undefined } } },
  "another client": { reason: "aud", change: { claims: { aud: "other-client" } } },
  "no audience": { reason: "aud", change: { claims: { aud: undefined } } },
  "an empty audience": { reason: "aud", change: { claims: { aud: [] } } },
  "several audiences and no azp": {
    reason: "azp",
    change: { claims: { aud: [clientId, "other"] } },
  },
  "several audiences and another azp": {
    reason: "azp",
    change: { claims: { aud: [clientId, "other"], azp: "other" } },
  },
  "another azp": { reason: "azp", change: { claims: { azp: "other" } } },
  "an end that is past": { reason: "exp", change: { claims: { exp: 1_800_000_000 - 31 } } },
  "no expiry": { reason: "exp", change: { claims: { exp: undefined } } },
  "an expiry that is text": { reason: "exp", change: { claims: { exp: "1900000000" } } },
  "an issue time in the future": { reason: "iat", change: { claims: { iat: 1_800_000_000 + 31 } } },
  "no issue time": { reason: "iat", change: { claims: { iat: undefined } } },
  "a beginning in the future": { reason: "nbf", change: { claims: { nbf: 1_800_000_000 + 31 } } },
  "the nonce of another login": { reason: "nonce", change: { claims: { nonce: "n-2" } } },
  "no nonce": { reason: "nonce", change: { claims: { nonce: undefined } } },
  "the hash of another access token": {
    reason: "at_hash",
    change: { claims: { at_hash: hashOf("another") } },
  },
  "no hash of the access token": { reason: "at_hash", change: { claims: { at_hash: undefined } } },
  "a sub without prefix": { reason: "sub", change: { claims: { sub: alice } } },
  "a sub in mixed case": {
    reason: "sub",
    change: { claims: { sub: `svcid:${alice.replace("a11ce", "A11CE")}` } },
  },
  "a sub that is too short": { reason: "sub", change: { claims: { sub: "svcid:0x12" } } },
  "a sub that is no text": { reason: "sub", change: { claims: { sub: 7 } } },
  "no sub": { reason: "sub", change: { claims: { sub: undefined } } },
  "a business login without a business": {
    reason: "ext",
    change: { claims: { ext: { login_type: "business" } } },
  },
  "a business whose identity is no address": {
    reason: "ext",
    change: { claims: { ext: { login_type: "business", business: { ...business, id: "0x1" } } } },
  },
  ...Object.fromEntries(
    Object.entries({ id: undefined, name: undefined, verified: "true", status: undefined }).map(
      ([member, value]) => [
        `a business of which ${member} cannot be read`,
        {
          reason: "ext",
          change: {
            claims: { ext: { login_type: "business", business: { ...business, [member]: value } } },
          },
        },
      ],
    ),
  ),
};

describe("id tokens that fail a check are refused", () => {
  for (const [fault, { reason, change, jwt }] of Object.entries(badIdTokens)) {
    test(`an id token with ${fault} is refused by its ${reason}`, async () => {
      await assert.rejects(verifyId((await jwt?.()) ?? (await signId(change))), (error) => {
        assert.doesNotMatch(inspect(error, { depth: 10 }), /svcid:/, "it names nobody");
        return refused(reason)(error);
      });
    });
  }
});

describe("id tokens that pass every check are accepted", () => {
  const rows: Record<string, Changes> = {
    "when everything is right": {},
    "with its one audience in a list, and no azp": { claims: { aud: [clientId] } },
    "for a login of another type": { claims: { ext: { login_type: "personal" } } },
    "with several audiences and the right azp": {
      claims: { aud: [clientId, "other"], azp: clientId },
    },
    "less than thirty seconds around its times": {
      claims: { iat: 1_800_000_029, nbf: 1_800_000_029, exp: 1_799_999_971 },
    },
  };
  for (const [name, change] of Object.entries(rows)) {
    test(`an id token is accepted ${name}`, async () => {
      const token = await verifyId(await signId(change));
      assert.equal(token.user, alice);
      assert.equal(token.subject, subject);
      assert.equal(token.business, undefined);
    });
  }

  test("an id token is accepted when an ES256 key signed it", async () => {
    const [, key] = fake.keys;
    assert.ok(key);
    assert.equal((await verifyId(await signId({ key }))).user, alice);
  });

  test("an id token names the business that the person acted for", async () => {
    const ext = { login_type: "business", business: { ...business, id: `0x${"B".repeat(40)}` } };
    assert.deepEqual((await verifyId(await signId({ claims: { ext } }))).business, business);
  });
});

test("milliseconds are no time: by them every token would have expired", async () => {
  const misconfigured = { code: "configuration_invalid", reason: "now" };
  for (const now of [Date.now(), Number.NaN]) {
    await assert.rejects(merchant.verifyIdToken(await signId(), { now }), misconfigured);
    const given = { audience, now };
    await assert.rejects(merchant.verifyAccessToken(await signAccess(), given), misconfigured);
    await assert.rejects(
      merchant.login.verifyLogoutToken(await signLogout(), { now }),
      misconfigured,
    );
  }
});

test("an approval older than maxAge is refused", async () => {
  const jwt = await signId({ claims: { auth_time: fake.now - 91 } });
  const verify = (maxAgeSeconds: number) =>
    merchant.verifyIdToken(jwt, { maxAgeSeconds, now: fake.now });
  await assert.rejects(verify(60), refused("auth_time"));
  assert.equal((await verify(61)).user, alice);
});

describe("access tokens are good for one API", () => {
  test("an access token tells an API who calls, by which client, for what", async () => {
    const token = await verifyAccess(await signAccess());
    assert.equal(token.user, alice);
    assert.equal(token.clientId, clientId);
    assert.deepEqual(token.scope, ["openid", "offline", "offline_access"]);
  });

  const rows: Record<string, [reason: string, change: Changes]> = {
    "is refused for another API": ["aud", { claims: { aud: ["https://other.example"] } }],
    "is refused when it ended": ["exp", { claims: { exp: 1 } }],
    "is refused when it is bound to a key": ["cnf", { claims: { cnf: { jkt: "x" } } }],
    "is refused when no person is behind it": ["sub", { claims: { sub: clientId } }],
    "is refused without a client": ["client_id", { claims: { client_id: undefined } }],
    "is refused as an id token of the same audience": ["typ", { header: { typ: "JWT" } }],
  };
  for (const [name, [reason, change]] of Object.entries(rows)) {
    test(`an access token ${name}`, async () =>
      assert.rejects(verifyAccess(await signAccess(change)), refused(reason)));
  }

  test("an access token is not verified for an API without a name", async () => {
    const verification = merchant.verifyAccessToken(await signAccess(), {
      audience: "",
      now: fake.now,
    });
    await assert.rejects(verification, { code: "configuration_invalid", reason: "audience" });
  });
});

describe("logout tokens name who is logged out", () => {
  test("a logout token names the person, the login and when it ended, however late it comes", async () => {
    assert.deepEqual(await readLogout({ sub: undefined }), { sid: "sid-1", endedAt: 7 });
    assert.deepEqual(await readLogout({ sid: undefined }), { sub: subject, endedAt: 7 });
    const named = { sub: subject, sid: "sid-1", endedAt: fake.now };
    assert.deepEqual(await readLogout({ toe: undefined }), named);
  });

  const rows: Record<string, [reason: string, change: Changes]> = {
    "is refused with a nonce": ["nonce", { claims: { nonce: "n-1" } }],
    "is refused without its event": ["events", { claims: { events: {} } }],
    "is refused without events": ["events", { claims: { events: undefined } }],
    "is refused for an event of text": ["events", { claims: { events: { [logoutEvent]: "" } } }],
    "is refused without jti": ["jti", { claims: { jti: undefined } }],
    "is refused with an empty jti": ["jti", { claims: { jti: "" } }],
    "is refused with an empty sid": ["sid", { claims: { sid: "" } }],
    "is refused for a sid that is no text": ["sid", { claims: { sid: 7 } }],
    "is refused when it names nobody": ["sub", { claims: { sub: undefined, sid: undefined } }],
    "is refused for a sub of another form": ["sub", { claims: { sub: 7 } }],
    "is refused for a sub that is an address alone": ["sub", { claims: { sub: alice } }],
    "is refused for a sub of another kind of identity": ["sub", { claims: { sub: "acct:alice" } }],
    "is refused for another client": ["aud", { claims: { aud: "other" } }],
    "is refused when it ended": ["exp", { claims: { exp: 1 } }],
    "is refused without issue time": ["iat", { claims: { iat: undefined } }],
    "is refused when its event has no time": ["toe", { claims: { toe: "now" } }],
    "is refused when it is an id token": ["typ", { header: { typ: "JWT" } }],
  };
  for (const [name, [reason, change]] of Object.entries(rows)) {
    test(`a logout token ${name}`, async () =>
      assert.rejects(verifyLogout(await signLogout(change)), refused(reason)));
  }
});

test("a new key is found at once, and made-up key names cause one request in thirty seconds", async () => {
  await using other = await openFakeIssuer();
  const own = openFor(other);
  const verify = async (changes: Changes) =>
    own.verifyIdToken(await other.sign("JWT", other.idClaims(), changes), { now: other.now });
  const requests = () => other.countOf("/.well-known/jwks.json");

  await verify({});
  const next = await makeKey("rsa-2");
  other.keys.push(next);
  assert.equal((await verify({ key: next })).user, alice);
  assert.equal(requests(), 2);

  const forged = await makeKey("forged");
  await Promise.all(
    Array.from({ length: 10 }, () => assert.rejects(verify({ key: forged }), refused("kid"))),
  );
  assert.equal(requests(), 2);
  other.now += 30;
  await Promise.all(
    Array.from({ length: 10 }, () => assert.rejects(verify({ key: forged }), refused("kid"))),
  );
  assert.equal(requests(), 3);
});

test("a key that the broker took back is refused ten minutes later", async () => {
  await using other = await openFakeIssuer();
  const own = openFor(other);
  const verify = async () =>
    own.verifyIdToken(await other.sign("JWT", other.idClaims()), { now: other.now });
  await verify();
  other.keys.shift();
  other.now += 599;
  await verify();
  other.now += 1;
  await assert.rejects(verify(), refused("kid"));
});

test("a clock that was ahead and is set back keeps no key that the broker took back", async () => {
  await using other = await openFakeIssuer();
  const own = openFor(other);
  const verify = async () =>
    own.verifyIdToken(await other.sign("JWT", other.idClaims()), { now: other.now });
  other.now += 86_400;
  await verify();
  other.now -= 86_400;
  other.keys.shift();
  await assert.rejects(verify(), refused("kid"));
});

test("parallel verifications share one request for discovery and keys", async () => {
  await using other = await openFakeIssuer();
  const own = openFor(other);
  const jwt = await other.sign("JWT", other.idClaims());
  await Promise.all(Array.from({ length: 20 }, () => own.verifyIdToken(jwt, { now: other.now })));
  assert.equal(other.countOf("/.well-known/openid-configuration"), 1);
  assert.equal(other.countOf("/.well-known/jwks.json"), 1);
});

test("only RS256 and ES256 are believed, each where the broker announces it", async () => {
  await using other = await openFakeIssuer();
  const verify = async (announced: unknown, key?: Changes["key"]) => {
    other.discovery = { id_token_signing_alg_values_supported: announced };
    const jwt = await other.sign("JWT", other.idClaims(), key === undefined ? {} : { key });
    return openFor(other).verifyIdToken(jwt, { now: other.now });
  };
  const [, elliptic] = other.keys;
  assert.equal((await verify(["RS256"])).user, alice);
  assert.equal((await verify(["ES256"], elliptic)).user, alice);
  await assert.rejects(verify(["ES256"]), refused("alg"));
  await assert.rejects(verify(["RS256"], elliptic), refused("alg"));
  await assert.rejects(verify(undefined), refused("alg"));
  const strange = await makeKey("ps-1", "PS256");
  other.keys.push(strange);
  await assert.rejects(verify(["RS256", "ES256", "PS256"], strange), refused("alg"));
});

test("a discovery document of another issuer is refused, and one of an issuer that is nearly the same", async () => {
  await using other = await openFakeIssuer();
  const jwt = await other.sign("JWT", other.idClaims());
  const { url } = other;
  for (const issuer of [
    "https://evil.example",
    `${url}/`,
    `${url}/tenant`,
    `${url}.example`,
    [url],
  ]) {
    other.discovery = { issuer };
    const verification = openFor(other).verifyIdToken(jwt, { now: other.now });
    await assert.rejects(verification, { code: "issuer_mismatch" }, String(issuer));
  }
});

test("discovery and keys that are none are no answer, and two keys of one name are no key", async () => {
  await using other = await openFakeIssuer();
  const jwt = await other.sign("JWT", other.idClaims());
  const verifyWith = async (path: string, answer: () => Response) => {
    const send: typeof fetch = async (...call) =>
      call[0] === `${other.url}/.well-known${path}` ? answer() : fetch(...call);
    const own = openMerchant({
      issuer: other.url,
      clientId,
      redirectUri: "http://localhost:4001/callback",
      fetch: send,
      now: () => other.now,
    });
    return own.verifyIdToken(jwt, { now: other.now });
  };
  const [key] = other.keys;
  const twice = { keys: [key?.publicJwk, key?.publicJwk] };
  const rows: [path: string, answer: () => Response, expected: object][] = [
    [
      "/openid-configuration",
      () => new Response("{}", { status: 404 }),
      { code: "response_invalid" },
    ],
    ["/openid-configuration", () => new Response("[]"), { code: "response_invalid" }],
    ["/jwks.json", () => Response.json(twice, { status: 404 }), { code: "response_invalid" }],
    ["/jwks.json", () => new Response("none"), { code: "response_invalid", reason: "jwks_uri" }],
    [
      "/jwks.json",
      () => Response.json({ keys: {} }),
      { code: "response_invalid", reason: "jwks_uri" },
    ],
    ["/jwks.json", () => Response.json({ keys: [] }), { code: "token_refused", reason: "kid" }],
    ["/jwks.json", () => Response.json(twice), { code: "token_refused", reason: "kid" }],
    ["/jwks.json", () => new Response("{}", { status: 503 }), { code: "issuer_unreachable" }],
  ];
  for (const [path, answer, expected] of rows)
    await assert.rejects(verifyWith(path, answer), expected, `${path} ${JSON.stringify(expected)}`);
});

test("an endpoint that would send secrets in the clear is refused", async () => {
  await using other = await openFakeIssuer();
  for (const url of [
    "http://broker.example/token",
    "javascript:alert(1)",
    "https://user:pass@broker.example",
    "https://:pass@broker.example/token",
    "https://broker.example/token#a",
    "http://127.broker.example/token",
    "http://127.0.0.1.broker.example/token",
    "http://localhost.broker.example/token",
    7,
  ]) {
    other.discovery = { token_endpoint: url };
    await assert.rejects(openFor(other).login.start(), {
      code: "response_invalid",
      reason: "token_endpoint",
    });
  }
});

async function signWithPublicKey(): Promise<string> {
  const publicKey = await importJWK(
    fake.keys[0]?.publicJwk as Parameters<typeof importJWK>[0],
    "RS256",
    { extractable: true },
  );
  const secret = Buffer.from(await exportSPKI(publicKey as CryptoKey));
  return new SignJWT(idClaims())
    .setProtectedHeader({ alg: "HS256", kid: "rsa-1", typ: "JWT" })
    .sign(secret);
}

async function withCriticalHeader(): Promise<string> {
  const [, claims, signature] = (await signId()).split(".");
  const header = { alg: "RS256", kid: "rsa-1", typ: "JWT", crit: ["x"], x: 1 };
  return `${Buffer.from(JSON.stringify(header)).toString("base64url")}.${claims}.${signature}`;
}

import assert from "node:assert/strict";
import { createHash, generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { Problem } from "../platform/http/problems.ts";
import {
  checkClientSettings,
  clientDefaults,
  type ClientPolicy,
  type ClientSettings,
  matchSecret,
} from "./client.ts";

const policy: ClientPolicy = {
  profile: "production",
  ownHosts: ["id.example.net"],
  domain: "example.com",
};
const settings: ClientSettings = {
  ...clientDefaults,
  name: "Shop",
  authenticationMethod: "client_secret_basic",
  redirectUris: ["https://example.com/callback"],
  audiences: ["https://api.example.com", "urn:example:api", "reports"],
};
const jwk = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey.export({ format: "jwk" });

void test("by default numbers are matched, PKCE is required, DPoP and pushed requests are not", () => {
  const checked = checkClientSettings(settings, policy);
  assert.equal(checked.numberMatching, true);
  assert.equal(checked.pkceRequired, true);
  assert.equal(checked.dpopRequired, false);
  assert.equal(checked.pushedRequestRequired, false);
  assert.equal(checked.idTokenAlgorithm, "RS256");
});

void test("optional PKCE is refused in production and possible in dev", () => {
  const optional = { ...settings, pkceRequired: false };
  assert.throws(() => checkClientSettings(optional, policy), /pkceRequired/);
  const dev: ClientPolicy = { ...policy, profile: "dev" };
  assert.equal(checkClientSettings(optional, dev).pkceRequired, false);
  const browserOnly = { ...optional, authenticationMethod: "none" } as const;
  assert.throws(() => checkClientSettings(browserOnly, dev), /pkceRequired .* the type none/);
});

const refused: Record<string, Partial<ClientSettings>> = {
  "an empty name": { name: " " },
  "a name that nobody can see": { name: "\u200b\u3164" },
  "a name of two lines": { name: "Shop\nBank" },
  "a name that turns the reading direction": { name: "Shop\u202Eknab" },
  "a name of 101 characters": { name: "a".repeat(101) },
  "an audience with a space": { audiences: ["my api"] },
  "an audience with a fragment": { audiences: ["https://api.example.com#a"] },
  "an empty audience": { audiences: [""] },
  "an audience of 501 characters": { audiences: ["a".repeat(501)] },
  "an audience twice": { audiences: ["a", "a"] },
  "21 audiences": { audiences: Array.from({ length: 21 }, (_each, at) => `a${at}`) },
  "keys that its type does not use": { jwksUri: "https://example.com/jwks.json" },
  "a logout address on this service": { backchannelLogoutUri: "https://id.example.net/logout" },
  "a logout address in a private network": { backchannelLogoutUri: "https://10.0.0.1/logout" },
  "a logout address without TLS": { backchannelLogoutUri: "http://example.com/logout" },
  "a return after logout to elsewhere": { postLogoutRedirectUris: ["https://evil.example/"] },
  "private_key_jwt without keys": { authenticationMethod: "private_key_jwt" },
  "private_key_jwt with keys twice": {
    authenticationMethod: "private_key_jwt",
    jwks: { keys: [{ ...jwk, kty: "EC", alg: "ES256", crv: "P-256" }] },
    jwksUri: "https://example.com/jwks.json",
  },
  "keys fetched from a private network": {
    authenticationMethod: "private_key_jwt",
    jwksUri: "https://db.internal/jwks.json",
  },
};
for (const [name, change] of Object.entries(refused)) {
  void test(`a client with ${name} is refused`, () => {
    assert.throws(
      () => checkClientSettings({ ...settings, ...change }, policy),
      (error) => error instanceof Problem && error.reason === "invalid_request",
    );
  });
}

const checkOf = (changed: Partial<ClientSettings>) => () =>
  checkClientSettings({ ...settings, ...changed }, policy);

void test("an address has no parameter of its own that the answer to it adds", () => {
  for (const name of ["code", "state", "iss", "error", "error_description"])
    assert.throws(
      checkOf({ redirectUris: [`https://example.com/?${name}=1`] }),
      new RegExp(`redirectUris\\[0\\] holds the parameter ${name}, which the answer adds`),
    );
  const back = "https://example.com/bye";
  assert.throws(checkOf({ postLogoutRedirectUris: [`${back}?a=1&state=2`] }), /parameter state/);
  assert.doesNotThrow(checkOf({ postLogoutRedirectUris: [`${back}?code=1`] }));
});

void test("a name has up to 100 characters, and each of 20 audiences 500", () => {
  const name = "a".repeat(100);
  const audiences = Array.from({ length: 20 }, (_each, at) => String(at).padStart(500, "a"));
  const checked = checkClientSettings({ ...settings, name, audiences }, policy);
  assert.deepEqual([checked.name, checked.audiences], [name, audiences]);
});

void test("addresses that this service calls are kept in the form that was checked", () => {
  const checked = checkClientSettings(
    { ...settings, backchannelLogoutUri: "https://EXAMPLE.com/a/../logout" },
    policy,
  );
  assert.equal(checked.backchannelLogoutUri, "https://example.com/logout");
});

const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

void test("either live secret of a client is recognised, and nothing else", () => {
  const client = {
    secrets: [
      { id: "old", sha256: sha256("one") },
      { id: "new", sha256: sha256("two") },
    ],
  };
  assert.equal(matchSecret(client, "one"), "old");
  assert.equal(matchSecret(client, "two"), "new");
  assert.equal(matchSecret(client, "three"), null);
  for (let at = 0; at < 32; at += 1) {
    const other = sha256("one");
    other[at] = (other[at] ?? 0) ^ 1;
    assert.equal(
      matchSecret({ secrets: [{ id: "old", sha256: other }] }, "one"),
      null,
      `byte ${at}`,
    );
  }
  assert.equal(matchSecret(client, ""), null);
  assert.equal(matchSecret({ secrets: [] }, "one"), null);
});

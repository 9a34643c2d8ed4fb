import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../platform/http/problems.ts";
import { checkRedirectUris, type RedirectPolicy } from "./redirect-uri.ts";

const production: RedirectPolicy = {
  profile: "production",
  authenticationMethod: "client_secret_basic",
  domain: "example.com",
  setting: "redirectUris",
  added: ["code", "iss"],
  registered: [],
};
const native: RedirectPolicy = { ...production, authenticationMethod: "none" };
const dev: RedirectPolicy = { ...production, profile: "dev", domain: null };

function faultOf(uri: string, policy: RedirectPolicy): string | null {
  try {
    checkRedirectUris([uri], policy);
    return null;
  } catch (error) {
    assert.ok(error instanceof Problem);
    assert.equal(error.reason, "invalid_request");
    return error.message.replace("Invalid Request: redirectUris[0] ", "");
  }
}

const taken: [uri: string, policy: RedirectPolicy][] = [
  ["https://example.com", production],
  ["https://example.com/callback?tenant=1", production],
  ["https://example.com/callback?issuer=1&CODE=2", production],
  ["https://shop.example.com:8443/callback", production],
  ["com.example.app:/callback", native],
  ["com.example.app://callback", native],
  ["http://127.0.0.1:49152/callback", native],
  ["http://[::1]:49152/callback", native],
  ["http://localhost:4999/callback", dev],
  ["https://elsewhere.example/callback", dev],
];
for (const [uri, policy] of taken) {
  void test(`a client of the type ${policy.authenticationMethod} in ${policy.profile} may have the redirect URI ${uri}`, () => {
    assert.equal(faultOf(uri, policy), null);
  });
}

const refused: [uri: string, policy: RedirectPolicy, fault: string][] = [
  ["", dev, "is not a URL"],
  ["/callback", dev, "is not an absolute URL"],
  ["//example.com/callback", dev, "is not an absolute URL"],
  ["https://example.com/callback#top", production, "holds a fragment"],
  ["https://example.com/callback#", production, "holds a fragment"],
  ["https://example.com/?iss=x", production, "holds the parameter iss, which the answer adds"],
  ["https://example.com/?a&c%6fde", dev, "holds the parameter code, which the answer adds"],
  ["com.example.app:/?code=1", native, "holds the parameter code, which the answer adds"],
  ["https://*.example.com/callback", production, "holds a wildcard"],
  ["https://user@example.com/callback", production, "holds a user name"],
  ["https://@example.com/callback", production, "holds a user name"],
  ["com.example.app://user:pass@x/", native, "holds a user name"],
  ["https://example.com/a b", production, "is not a URL"],
  ["https://example.com\\@evil.org/", production, "is not a URL"],
  ["https://bücher.example/", dev, "is not a URL"],
  ["https://EXAMPLE.com/callback", production, "must be written https://example.com/callback"],
  ["https://example.com:443/", production, "must be written https://example.com/"],
  ["https://example.com/a/../b", production, "must be written https://example.com/b"],
  ["https:example.com/callback", production, "must be written https://example.com/callback"],
  ["http://example.com/callback", production, "must be https"],
  ["http://example.com/callback", dev, "must be https"],
  ["https://evilexample.com/", production, "must lie under example.com"],
  ["https://example.com.evil.org/", production, "must lie under example.com"],
  ["https://10.0.0.1/", production, "must lie under example.com"],
  ["https://example.com/", { ...production, domain: null }, "needs a verified client domain first"],
  [
    "http://localhost:3000/",
    production,
    "is on loopback, which only a client of the type none may use",
  ],
  ["http://127.1:3000/", dev, "must be written http://127.0.0.1:3000/"],
  [
    "com.example.app:/callback",
    production,
    "has a private-use scheme, which only a client of the type none may use",
  ],
];
for (const [uri, policy, fault] of refused) {
  void test(`"${uri}" is refused as a redirect URI in ${policy.profile}, as it ${fault}`, () =>
    assert.equal(faultOf(uri, policy), fault));
}

for (const uri of [
  "javascript:alert(1)",
  "data:text/html,x",
  "vbscript:x",
  "file:///etc/passwd",
  "svc:login",
  "myapp:/callback",
  "blob:https://example.com/x",
]) {
  void test(`${uri} is refused as a redirect URI for its scheme`, () => {
    assert.match(faultOf(uri, native) ?? "", /^must be https, or a private-use scheme with a dot/);
  });
}

const many = (count: number): string[] =>
  Array.from({ length: count }, (_each, at) => `https://example.com/${at}`);

void test("at most 20 addresses of 2,000 characters are taken, each once", () => {
  assert.equal(checkRedirectUris(many(20), production).length, 20);
  assert.throws(() => checkRedirectUris(many(21), production), /more than 20/);
  assert.throws(() => checkRedirectUris([...many(1), ...many(1)], production), /twice/);
  const long = `https://example.com/${"a".repeat(1_980)}`;
  assert.equal(faultOf(long, production), null);
  assert.equal(faultOf(`${long}a`, production), "is longer than 2000 characters");
});

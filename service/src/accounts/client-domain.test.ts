import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../platform/http/problems.ts";
import {
  isProofWaived,
  isVerified,
  liesUnder,
  parseCallbackHosts,
  parseDomain,
  proofLifetimeSeconds,
  proofOf,
} from "./client-domain.ts";

const isRefused = (error: unknown): boolean =>
  error instanceof Problem && error.reason === "invalid_request";

const isVerifiedAt = (now: number, provedAt: number | null = 1_000): boolean =>
  isVerified({ domain: "shop.example.com", provedAt }, { profile: "dev", now });

void test("a domain counts as verified for seven days from the last proof", () => {
  assert.equal(isVerifiedAt(1_000), true);
  assert.equal(isVerifiedAt(1_000 + proofLifetimeSeconds - 1), true);
  assert.equal(isVerifiedAt(1_000 + proofLifetimeSeconds), false);
  assert.equal(isVerifiedAt(1_000, null), false);
});

void test("only a developer's own machine needs no proof, and only in dev", () => {
  const local = { domain: "localhost:3000", provedAt: null };
  assert.equal(isVerified(local, { profile: "dev", now: 0 }), true);
  assert.equal(isVerified(local, { profile: "production", now: 0 }), false);
  assert.equal(isProofWaived("localhost:3000", "dev"), true);
  assert.equal(isProofWaived("localhost:3000", "production"), false);
  assert.equal(isProofWaived("localhost.example.com", "dev"), false);
});

void test("public host names are taken as they are", () => {
  for (const name of [
    "example.com",
    "shop.example.co.uk",
    "xn--bcher-kva.example",
    "a.b.c.example.org",
  ])
    assert.equal(parseDomain(name, "production"), name);
});

for (const name of [
  "",
  "Example.com",
  "example",
  "example.com.",
  "example.com:443",
  "https://example.com",
  "example.com/",
  "bücher.example",
  "-a.example.com",
  "a..example.com",
  "127.0.0.1",
  "[::1]",
  "shop.local",
  "shop.internal",
  "co.uk",
  "com.au",
  "github.io",
  "vercel.app",
  "*.example.com",
  "user@example.com",
  `${"a".repeat(64)}.example.com`,
]) {
  void test(`"${name.slice(0, 30)}" is refused as a domain`, () => {
    assert.throws(() => parseDomain(name, "dev"), isRefused);
    assert.throws(() => parseDomain(name, "production"), isRefused);
  });
}

void test("localhost with an optional port is a domain in dev alone", () => {
  for (const name of ["localhost", "localhost:1", "localhost:65535"]) {
    assert.equal(parseDomain(name, "dev"), name);
    assert.throws(() => parseDomain(name, "production"), isRefused);
  }
  for (const name of ["localhost:0", "localhost:65536", "localhost:", "localhost:080", "LOCALHOST"])
    assert.throws(() => parseDomain(name, "dev"), isRefused);
});

void test("a host lies under a domain at a label, not in the middle of one", () => {
  assert.equal(liesUnder("example.com", "example.com"), true);
  assert.equal(liesUnder("a.b.example.com", "example.com"), true);
  assert.equal(liesUnder("evilexample.com", "example.com"), false);
  assert.equal(liesUnder("example.com.evil.org", "example.com"), false);
});

void test("the proof is a TXT record or a file with the same line", () => {
  assert.deepEqual(proofOf({ domain: "shop.example.com", proofToken: "abc" }), {
    txtName: "_svc-challenge.shop.example.com",
    url: "https://shop.example.com/.well-known/svc-domain-proof",
    content: "svc-domain-proof=abc",
  });
});

void test("hosts of callbacks are written as they stand in a URL, each once", () => {
  const hosts = ["hooks.example.com", "shop.example.com:8443", "localhost:4998"];
  assert.deepEqual(parseCallbackHosts([...hosts, "hooks.example.com"], "dev"), hosts);
  assert.throws(() => parseCallbackHosts(hosts, "production"), isRefused);
  for (const host of [
    "",
    "localhost",
    "Hooks.example.com",
    "hooks.example.com:443",
    "hooks.example.com/hook",
    "hooks.example.com?x",
    "https://hooks.example.com",
    "user@hooks.example.com",
    "10.0.0.1",
    "*.example.com",
  ])
    assert.throws(() => parseCallbackHosts([host], "dev"), isRefused, host);
  assert.throws(() => parseCallbackHosts([], "dev"), isRefused);
  const many = Array.from({ length: 21 }, (_, at) => `hooks-${at}.example.com`);
  assert.throws(() => parseCallbackHosts(many, "dev"), isRefused);
  assert.equal(parseCallbackHosts(many.slice(1), "dev").length, 20);
});

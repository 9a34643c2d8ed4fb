import assert from "node:assert/strict";
import { test } from "node:test";

import { exportJWK } from "jose";

import {
  alice,
  clientId,
  clientSecret,
  makeKey,
  openFakeIssuer,
  subject,
} from "../test/fake-issuer.ts";
import { openMerchant } from "./index.ts";
import { isIssuerUrl } from "./issuer.ts";

/** A merchant whose requests for keys get `answer`, as long as one is set. */
async function openWorld() {
  const fake = await openFakeIssuer();
  const keys: { answer: (() => Response) | undefined; asked: number } = {
    answer: undefined,
    asked: 0,
  };
  const send: typeof fetch = async (url, init) => {
    if (url !== `${fake.url}/.well-known/jwks.json`) return fetch(url, init);
    keys.asked += 1;
    return keys.answer?.() ?? fetch(url, init);
  };
  const merchant = openMerchant({
    issuer: fake.url,
    clientId,
    clientSecret,
    redirectUri: "http://localhost:4001/callback",
    fetch: send,
    now: () => fake.now,
  });
  return { fake, keys, merchant, [Symbol.asyncDispose]: () => fake[Symbol.asyncDispose]() };
}

const away = () => new Response("{}", { status: 503 });

test("tokens of a new key that come at the same moment are all believed, and cost one request", async () => {
  await using world = await openWorld();
  const { fake, keys, merchant } = world;
  await merchant.verifyIdToken(await fake.sign("JWT", fake.idClaims()));
  const key = await makeKey("rsa-2");
  fake.keys.push(key);
  const jwt = await fake.sign("JWT", fake.idClaims(), { key });
  const tokens = await Promise.all([jwt, jwt, jwt].map((each) => merchant.verifyIdToken(each)));
  assert.deepEqual(
    tokens.map(({ user }) => user),
    [alice, alice, alice],
  );
  assert.equal(keys.asked, 2);
});

test("while a new key cannot be asked for, its tokens are not refused, and the broker is left alone", async () => {
  await using world = await openWorld();
  const { fake, keys, merchant } = world;
  await merchant.verifyIdToken(await fake.sign("JWT", fake.idClaims()));
  const key = await makeKey("rsa-2");
  fake.keys.push(key);
  const jwt = await fake.sign("JWT", fake.idClaims(), { key });
  keys.answer = away;
  for (let call = 0; call < 3; call++)
    await assert.rejects(merchant.verifyIdToken(jwt), { code: "issuer_unreachable" });
  fake.now += 29;
  await assert.rejects(merchant.verifyIdToken(jwt), { code: "issuer_unreachable" });
  assert.equal(keys.asked, 2);
  keys.answer = undefined;
  fake.now += 1;
  assert.equal((await merchant.verifyIdToken(jwt)).user, alice);
});

test("a refresh token is not used up as long as the answer could not be verified", async () => {
  await using world = await openWorld();
  const { fake, keys, merchant } = world;
  fake.refreshTokens.add("refresh-1");
  keys.answer = away;
  const refresh = () => merchant.login.refresh("refresh-1", { subject });
  await assert.rejects(refresh(), { code: "issuer_unreachable" });
  keys.answer = undefined;
  assert.equal((await refresh()).user, alice);
});

test("a key that is none is a fault of the broker, and says nothing about the token", async () => {
  await using world = await openWorld();
  const { fake, keys, merchant } = world;
  const [key] = fake.keys;
  assert.ok(key !== undefined);
  const { n, ...rest } = await exportJWK(key.privateKey);
  const jwt = await fake.sign("JWT", fake.idClaims());
  for (const members of [
    { ...rest, n },
    { kty: "RSA", e: "AQAB" },
  ]) {
    const { kid, alg } = key;
    keys.answer = () => Response.json({ keys: [{ ...members, kid, alg }] });
    fake.now += 600;
    await assert.rejects(merchant.verifyIdToken(jwt), {
      code: "response_invalid",
      reason: "jwks_uri",
    });
  }
  assert.equal(keys.asked, 2, "each answer was asked for once");
});

test("a broker is reached by https anywhere, by plain http on this machine alone, and its paths can be appended", () => {
  for (const url of [
    "https://id.example.com",
    "https://id.example.com:8443/base",
    "http://localhost:4000",
    "http://127.0.0.1:4000",
    "http://127.9.8.7",
    "http://[::1]:4000",
  ])
    assert.ok(isIssuerUrl(url), url);
  for (const url of [
    "http://id.example.com",
    "http://127.0.0.1.example.com",
    "http://[::2]:4000",
    "https://id.example.com/",
    "https://id.example.com?tenant=1",
    "https://id.example.com#a",
    "https://user@id.example.com",
    "id.example.com",
  ])
    assert.ok(!isIssuerUrl(url), url);
});

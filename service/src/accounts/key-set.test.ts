import assert from "node:assert/strict";
import { generateKeyPairSync } from "node:crypto";
import { test } from "node:test";
import { Problem } from "../platform/http/problems.ts";
import { parseKeySet } from "./key-set.ts";

type Jwk = Record<string, unknown>;
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const weak = generateKeyPairSync("rsa", { modulusLength: 1024 });
const p256 = generateKeyPairSync("ec", { namedCurve: "P-256" });
const p384 = generateKeyPairSync("ec", { namedCurve: "P-384" });
const rsaJwk: Jwk = { ...rsa.publicKey.export({ format: "jwk" }) };
const ecJwk: Jwk = { ...p256.publicKey.export({ format: "jwk" }) };

void test("RSA keys of 2048 bits and P-256 keys are taken, reduced to what matters", () => {
  const { keys } = parseKeySet({
    keys: [
      { ...rsaJwk, kid: "a", use: "sig", x5c: ["junk"], extra: 1 },
      { ...ecJwk, kid: "b", alg: "ES256" },
    ],
  });
  assert.deepEqual(keys, [
    { kty: "RSA", kid: "a", alg: "RS256", n: rsaJwk["n"], e: rsaJwk["e"] },
    { kty: "EC", kid: "b", alg: "ES256", crv: "P-256", x: ecJwk["x"], y: ecJwk["y"] },
  ]);
});

void test("a key set has up to ten keys", () => {
  const keys = Array.from({ length: 10 }, (_each, at) => ({ ...ecJwk, kid: String(at) }));
  assert.equal(parseKeySet({ keys }).keys.length, 10);
});

const refused: Record<string, unknown> = {
  "null in place of an object": null,
  "a list in place of an object": [rsaJwk],
  "no keys": { keys: [] },
  "too many keys": {
    keys: Array.from({ length: 11 }, (_each, at) => ({ ...ecJwk, kid: String(at) })),
  },
  "a private RSA key": { keys: [rsa.privateKey.export({ format: "jwk" })] },
  "a private EC key": { keys: [p256.privateKey.export({ format: "jwk" })] },
  "a shared secret": { keys: [{ kty: "oct", k: "AAAA" }] },
  "an RSA key below 2048 bits": { keys: [weak.publicKey.export({ format: "jwk" })] },
  "another curve": { keys: [p384.publicKey.export({ format: "jwk" })] },
  "a point off the curve": { keys: [{ ...ecJwk, x: ecJwk["y"] }] },
  "the exponent 1": { keys: [{ ...rsaJwk, e: "AQ" }] },
  "an exponent of 40 bits": { keys: [{ ...rsaJwk, e: "AQAAAAE" }] },
  "an even exponent": { keys: [{ ...rsaJwk, e: "BA" }] },
  "another algorithm": { keys: [{ ...rsaJwk, alg: "PS256" }] },
  "the algorithm none": { keys: [{ ...rsaJwk, alg: "none" }] },
  "a key for encryption": { keys: [{ ...rsaJwk, use: "enc" }] },
  "two keys of one name": {
    keys: [
      { ...ecJwk, kid: "a" },
      { ...rsaJwk, kid: "a" },
    ],
  },
  "two keys without a name": { keys: [ecJwk, rsaJwk] },
  "a name that is no text": { keys: [{ ...ecJwk, kid: 7 }] },
};
for (const [name, value] of Object.entries(refused)) {
  void test(`a key set with ${name} is refused`, () => {
    assert.throws(
      () => parseKeySet(value),
      (error) => error instanceof Problem && error.reason === "invalid_request",
    );
  });
}

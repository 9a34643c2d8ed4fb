import assert from "node:assert/strict";
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  sign,
} from "node:crypto";
import { test } from "node:test";
import { isSignedBy, parseForeignJwt } from "./foreign-jwt.ts";

const signingInput = "e30.e30";
const jwtWith = (signature: Buffer) => ({ header: {}, claims: {}, signingInput, signature });
const bytesOf = (value: bigint, length: number): Buffer =>
  Buffer.from(value.toString(16).padStart(length * 2, "0"), "hex");

/** A public key of this size and exponent with a signature that fits it: nobody needs a private key for that. */
function forged(bits: number, exponent: 1n | 3n): { key: KeyObject; signature: Buffer } {
  const length = bits / 8;
  const hash = createHash("sha256").update(signingInput).digest("hex");
  const info = `003031300d060960864801650304020105000420${hash}`;
  const padded = BigInt(`0x0001${"ff".repeat(length - 2 - info.length / 2)}${info}`);
  // A cube between 2 ** (bits - 1) and 2 ** bits.
  const [power, rest] = [Math.floor((bits - 1) / 3), (bits - 1) % 3];
  let root = BigInt(Math.floor(2 ** 20 * Math.cbrt(1.5 * 2 ** rest))) << BigInt(power - 20);
  if ((root ** 3n - padded) % 2n === 0n) root += 1n;
  const modulus = exponent === 1n ? (1n << BigInt(bits)) - 1n : root ** 3n - padded;
  const n = bytesOf(modulus, length).toString("base64url");
  const e = bytesOf(exponent, 1).toString("base64url");
  const key = createPublicKey({ key: { kty: "RSA", n, e }, format: "jwk" });
  assert.equal(key.asymmetricKeyDetails?.modulusLength, bits);
  return { key, signature: bytesOf(exponent === 1n ? padded : root, length) };
}

test("a signature counts only under a key of the kind and size that its algorithm demands", () => {
  for (const [bits, exponent, isGood] of [
    [2048, 3n, true],
    [8192, 3n, true],
    [2048, 1n, false],
    [1536, 3n, false],
    [9216, 3n, false],
  ] as const) {
    const { key, signature } = forged(bits, exponent);
    assert.equal(isSignedBy(jwtWith(signature), key, "RS256"), isGood, `${bits} ${exponent}`);
  }
  for (const [namedCurve, isGood] of [
    ["P-256", true],
    ["P-384", false],
  ] as const) {
    const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve });
    const key = { key: privateKey, dsaEncoding: "ieee-p1363" } as const;
    const signature = sign("sha256", Buffer.from(signingInput), key);
    assert.equal(isSignedBy(jwtWith(signature), publicKey, "ES256"), isGood, namedCurve);
  }
});

test("a signature is accepted only in canonical base64url", () => {
  const jwt = `${signingInput}.${Buffer.alloc(64).toString("base64url")}`;
  assert.deepEqual(parseForeignJwt(jwt)?.signature.length, 64);
  // Only two bits of the last character count; the other four are zero in the canonical spelling.
  for (const last of ["B", "P", "A=", "A==", " A", "A\n"])
    assert.equal(parseForeignJwt(jwt.slice(0, -1) + last), null, last);
});

/** The inverse of a number that shares no factor with the modulus. */
function inverse(value: bigint, modulus: bigint): bigint {
  let [rest, next, factor, following] = [value % modulus, modulus, 1n, 0n];
  while (rest > 1n) {
    const times = next / rest;
    [rest, next] = [next % rest, rest];
    [factor, following] = [following - times * factor, factor];
  }
  return ((factor % modulus) + modulus) % modulus;
}

const numberOf = (text = ""): bigint =>
  BigInt(`0x${Buffer.from(text, "base64url").toString("hex")}`);
const textOf = (value: bigint): string =>
  bytesOf(value, Math.ceil(value.toString(16).length / 2)).toString("base64url");

/** The same key with this exponent, which Node itself does not make. */
function pairWith(
  given: JsonWebKey,
  exponent: bigint,
): { publicKey: KeyObject; privateKey: KeyObject } {
  const [p, q] = [numberOf(given.p), numberOf(given.q)];
  const d = inverse(exponent, (p - 1n) * (q - 1n));
  const parts = { d: textOf(d), dp: textOf(d % (p - 1n)), dq: textOf(d % (q - 1n)) };
  const key = { ...given, e: textOf(exponent), ...parts };
  const privateKey = createPrivateKey({ key, format: "jwk" });
  return { privateKey, publicKey: createPublicKey(privateKey) };
}

test("a key counts only with an exponent of at most 32 bits: verifying a proof with a long one would hold up everybody", () => {
  const given = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({
    format: "jwk",
  });
  // Primes, and so without a factor in common with the order of the group.
  for (const [exponent, isGood] of [
    [65_537n, true],
    [4_294_967_291n, true],
    [4_294_967_311n, false],
    [2n ** 1279n - 1n, false],
  ] as const) {
    const { publicKey, privateKey } = pairWith(given, exponent);
    const signature = sign("sha256", Buffer.from(signingInput), privateKey);
    assert.equal(isSignedBy(jwtWith(signature), publicKey, "RS256"), isGood, String(exponent));
  }
});

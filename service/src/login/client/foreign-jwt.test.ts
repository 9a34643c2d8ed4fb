import assert from "node:assert/strict";
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { test } from "node:test";
import { isSignedBy } from "./foreign-jwt.ts";

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

test("a signature counts under a key of the kind and size of its algorithm alone", () => {
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

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { addressOfPrivateKey, addressOfPublicKey, parseSignature, signDigest } from "@svc/protocol";
import { signDigest as signInTests } from "../../../../test/signing.ts";
import {
  addressOfPrivateKey as findAddress,
  loadNative,
  loadPortable,
  recoverAddress,
  type Secp256k1,
} from "./secp256k1.ts";

/** The prime of the field and the order of the group (SEC 2, section 2.4.1). */
const field = 2n ** 256n - 2n ** 32n - 977n;
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

const wordOf = (value: bigint): string => value.toString(16).padStart(64, "0");
const signatureOf = (r: bigint, s: bigint, v: "1b" | "1c" = "1b"): string =>
  `0x${wordOf(r)}${wordOf(s)}${v}`;

test("the address of whoever signed a digest is recovered from the signature", () => {
  for (let round = 0; round < 20; round += 1) {
    const key = randomBytes(32);
    const digest = randomBytes(32);
    const signature = signDigest(digest, key);
    assert.equal(recoverAddress(digest, signature), addressOfPrivateKey(key));
    assert.notEqual(recoverAddress(randomBytes(32), signature), addressOfPrivateKey(key));
    assert.equal(signInTests(digest, key), signature);
  }
});

test("values that belong to no point or no signature recover nobody", () => {
  const digest = randomBytes(32);
  // 5 is no x of a point on the curve.
  for (const r of [0n, 5n, order, order + 1n, field, 2n ** 256n - 1n])
    assert.equal(recoverAddress(digest, signatureOf(r, 1n)), null, wordOf(r));
  for (const s of [0n, order - 1n, order, 2n ** 256n - 1n])
    assert.equal(recoverAddress(digest, signatureOf(1n, s)), null, wordOf(s));
});

const find = (by: Secp256k1, digest: Uint8Array, text: string): string | null => {
  const signature = parseSignature(text);
  assert.ok(signature !== null, text);
  try {
    const key = by.recover(digest, signature);
    return key === null ? null : Buffer.from(key).toString("hex");
  } catch {
    return null;
  }
};

test("on this machine the built library and the portable one find the same", (t) => {
  const native = loadNative();
  if (native === null) return t.skip("there is no build for this machine");
  const portable = loadPortable();
  for (let round = 0; round < 200; round += 1) {
    const digest = round === 0 ? new Uint8Array(32) : randomBytes(32);
    const r = BigInt(`0x${randomBytes(32).toString("hex")}`);
    const s = BigInt(`0x${randomBytes(32).toString("hex")}`) >> 1n;
    for (const text of [
      signDigest(digest, randomBytes(32)),
      signatureOf(r, s),
      signatureOf(r, s, "1c"),
      signatureOf(BigInt(round), BigInt(round)),
    ]) {
      if (parseSignature(text) === null) continue;
      assert.equal(find(native, digest, text), find(portable, digest, text), text);
    }
  }
});

test("a key has the same address by every library, and an invalid key has none", () => {
  const native = loadNative();
  const libraries = [loadPortable(), ...(native === null ? [] : [native])];
  for (let round = 0; round < 20; round += 1) {
    const key = randomBytes(32);
    const address = addressOfPrivateKey(key);
    assert.equal(findAddress(key), address);
    for (const by of libraries) assert.equal(addressOfPublicKey(by.publicKeyOf(key)), address);
  }
  for (const key of [new Uint8Array(32), Buffer.from(wordOf(order), "hex"), randomBytes(31)])
    for (const by of libraries) assert.throws(() => by.publicKeyOf(key));
});

const sign = (by: Secp256k1, digest: Uint8Array, key: Uint8Array): string => {
  const { compact, recovery } = by.sign(digest, key);
  return `${Buffer.from(compact).toString("hex")} ${recovery}`;
};

test("on this machine the built library and the portable one sign the same", (t) => {
  const native = loadNative();
  if (native === null) return t.skip("there is no build for this machine");
  const portable = loadPortable();
  for (let round = 0; round < 100; round += 1) {
    const digest = round === 0 ? new Uint8Array(32) : randomBytes(32);
    const key = randomBytes(32);
    assert.equal(sign(native, digest, key), sign(portable, digest, key));
  }
  for (const key of [new Uint8Array(32), Buffer.from(wordOf(order), "hex")])
    for (const by of [native, portable]) assert.throws(() => by.sign(randomBytes(32), key));
});

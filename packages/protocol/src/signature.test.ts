import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";
import { privateKeyToAccount } from "viem/accounts";

import vectors from "../vectors/digests.json" with { type: "json" };
import { addressOfPublicKey } from "./address.ts";
import { bytesOfHex, hexOfBytes } from "./encoding.ts";
import {
  addressOfPrivateKey,
  isContractYes,
  parseSignature,
  personalDigest,
  recoverAddress,
  signDigest,
} from "./signature.ts";
import { anyHash } from "../tools/generated-links.ts";

function bytes(hex: string): Uint8Array {
  const value = bytesOfHex(hex);
  assert.ok(value !== null);
  return value;
}
const key = bytes(vectors.privateKey);

test("every signature of the vectors is made alike and recovers its signer", () => {
  assert.equal(addressOfPrivateKey(key), vectors.address);
  for (const { digest, signature } of [...vectors.typedData, ...vectors.personal]) {
    assert.equal(signDigest(bytes(digest), key), signature);
    const parsed = parseSignature(signature);
    assert.ok(parsed !== null);
    assert.equal(recoverAddress(bytes(digest), parsed), vectors.address);
  }
});

test("a personal message has the EIP-191 digest of the vectors", () => {
  for (const { data, digest } of vectors.personal)
    assert.equal(hexOfBytes(personalDigest(bytes(data))), digest);
});

test("another spelling of a signature is not read: high s, other v, other length, zero, too large", () => {
  for (const text of vectors.invalidSignatures) assert.equal(parseSignature(text), null, text);
});

const withS = (s: bigint): ReturnType<typeof parseSignature> =>
  parseSignature(`0x${"11".repeat(32)}${s.toString(16).padStart(64, "0")}1b`);

test("s is in the lower half of the order, the middle included", () => {
  const middle = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;
  assert.notEqual(withS(1n), null);
  assert.notEqual(withS(middle), null);
  assert.equal(withS(middle + 1n), null);
  assert.equal(withS(0n), null);
});

test("a signature in upper-case hex is read", () => {
  const [first] = vectors.typedData;
  assert.ok(first);
  assert.notEqual(parseSignature(`0x${first.signature.slice(2).toUpperCase()}`), null);
});

test("a signature of any key over any digest is viem's and recovers the key's address", async () => {
  await fc.assert(
    fc.asyncProperty(anyHash, anyHash, async (secret, digest) => {
      fc.pre(!/^0x0+$/.test(secret) && !secret.startsWith("0xfffffffffffffffffffffffffffffff"));
      const account = privateKeyToAccount(secret);
      const signature = signDigest(bytes(digest), bytes(secret));
      assert.equal(signature, await account.sign({ hash: digest }));
      const parsed = parseSignature(signature);
      assert.ok(parsed !== null);
      assert.equal(recoverAddress(bytes(digest), parsed), account.address.toLowerCase());
    }),
    { numRuns: 20 },
  );
});

test("a made-up signature recovers some other address or none, never throws", () => {
  fc.assert(
    fc.property(anyHash, anyHash, anyHash, (r, s, digest) => {
      const parsed = parseSignature(`${r}${s.slice(2)}1b`);
      const address = parsed === null ? null : recoverAddress(bytes(digest), parsed);
      assert.notEqual(address, vectors.address);
    }),
    { numRuns: 50 },
  );
});

test("a digest of another length is not signed, a key of another form has no address", () => {
  for (const length of [31, 33])
    assert.throws(() => signDigest(new Uint8Array(length).fill(1), key), TypeError);
  const compressed = Uint8Array.of(2, ...new Uint8Array(32).fill(1));
  for (const point of [compressed, new Uint8Array(65).fill(2), Uint8Array.of(4)])
    assert.throws(() => addressOfPublicKey(point), TypeError);
});

test("a contract says yes by the whole first word of its answer, not by its first four bytes", () => {
  const yes = `0x1626ba7e${"0".repeat(56)}`;
  for (const answer of [yes, yes.replace("ba7e", "BA7E"), `${yes}${"f".repeat(64)}`])
    assert.ok(isContractYes(answer), answer);
  const question = `0x1626ba7e${"ab".repeat(32)}${"0".repeat(62)}40`;
  for (const answer of ["0x", "0x1626ba7e", yes.slice(0, -1), `${yes.slice(0, -1)}1`, question])
    assert.ok(!isContractYes(answer), answer);
  assert.ok(!isContractYes(`0xffffffff${"0".repeat(56)}`));
});

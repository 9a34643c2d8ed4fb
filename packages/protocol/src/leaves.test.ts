import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";
import { encodeAbiParameters, keccak256, parseAbiParameters, stringToBytes } from "viem";

import vectors from "../vectors/leaves.json" with { type: "json" };
import type { Address } from "./address.ts";
import { fieldNames } from "./attributes.ts";
import type { Hex32 } from "./encoding.ts";
import { LEAF_TYPEHASH, commitmentOf, leafOf } from "./leaves.ts";
import { anyAddress, anyHash } from "../tools/generated-links.ts";

const hashOf = (text: string): Hex32 => keccak256(stringToBytes(text));

test("every commitment and leaf of the vectors comes out", () => {
  assert.equal(LEAF_TYPEHASH, vectors.typeHash);
  for (const each of vectors.leaves) {
    const opening = each as typeof each & { user: Address; commitment: Hex32; pepper: Hex32 };
    assert.equal(commitmentOf(opening), each.commitment);
    assert.equal(leafOf(opening), each.leaf);
  }
});

test("commitments and leaves equal viem's, whatever they hold and in any order of calls", () => {
  const opening = fc.record({
    user: anyAddress,
    field: fc.oneof(fc.constantFrom(...fieldNames), fc.string()),
    data: fc.string({ unit: "grapheme" }),
    pepper: anyHash,
    expiresAt: fc.maxSafeNat(),
  });
  fc.assert(
    fc.property(opening, ({ user, field, data, pepper, expiresAt }) => {
      const commitment = keccak256(
        encodeAbiParameters(parseAbiParameters("bytes32, bytes32"), [hashOf(data), pepper]),
      );
      assert.equal(commitmentOf({ data, pepper }), commitment);
      const inner = encodeAbiParameters(
        parseAbiParameters("bytes32, address, bytes32, bytes32, uint64"),
        [vectors.typeHash as Hex32, user, hashOf(field), commitment, BigInt(expiresAt)],
      );
      assert.equal(leafOf({ user, field, commitment, expiresAt }), keccak256(keccak256(inner)));
    }),
    { numRuns: 300 },
  );
});

test("a leaf refuses members of the wrong size and is not spoiled by them", () => {
  const [first] = vectors.leaves as [(typeof vectors.leaves)[0] & { user: Address }];
  const opening = { ...first, commitment: first.commitment as Hex32 };
  for (const wrong of [
    { ...opening, user: "0x00" as Address },
    { ...opening, commitment: "0x00" as Hex32 },
    { ...opening, expiresAt: -1 },
    { ...opening, expiresAt: 1.5 },
  ]) {
    assert.throws(() => leafOf(wrong), TypeError);
  }
  assert.throws(() => commitmentOf({ data: "", pepper: "0x00" }), TypeError);
  assert.equal(leafOf(opening), first.leaf);
});

test("members that only differ in where one ends and the next begins have different leaves", () => {
  const pepper = vectors.leaves[0]?.pepper as Hex32;
  assert.notEqual(commitmentOf({ data: "ab", pepper }), commitmentOf({ data: "a", pepper }));
  const all = vectors.leaves.map(({ leaf }) => leaf);
  assert.equal(new Set(all).size, all.length);
});

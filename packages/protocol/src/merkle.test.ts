import assert from "node:assert/strict";
import { test } from "node:test";

import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import * as fc from "fast-check";

import vectors from "../vectors/trees.json" with { type: "json" };
import type { Hex32 } from "./encoding.ts";
import { buildTree, rootOfProof, verifyMerkleProof } from "./merkle.ts";
import { anyHash } from "../tools/generated-links.ts";

test("every root and proof of the vectors comes out, whatever the order of the leaves", () => {
  for (const { leaves, root, proofs } of vectors.trees) {
    const tree = buildTree(leaves.toReversed() as Hex32[]);
    assert.equal(tree.root, root);
    for (const [index, leaf] of (leaves as Hex32[]).entries()) {
      assert.deepEqual(tree.proofOf(leaf), proofs[index]);
      assert.equal(rootOfProof(leaf, tree.proofOf(leaf)), root);
    }
  }
});

test("a tree of any leaves is the one of @openzeppelin/merkle-tree, proofs included", () => {
  fc.assert(
    fc.property(fc.uniqueArray(anyHash, { minLength: 1, maxLength: 70 }), (leaves) => {
      const ours = buildTree(leaves);
      const theirs = SimpleMerkleTree.of(leaves);
      assert.equal(ours.root, theirs.root);
      for (const leaf of leaves) {
        const proof = ours.proofOf(leaf);
        assert.deepEqual(proof, theirs.getProof(leaf));
        assert.ok(verifyMerkleProof({ leaf, proof, root: ours.root }));
      }
    }),
    { numRuns: 60 },
  );
});

const upper = (hash: Hex32): Hex32 => `0x${hash.slice(2).toUpperCase()}`;
const [tree] = vectors.trees.slice(-1);
const given = {
  leaf: tree?.leaves[0] as Hex32,
  proof: tree?.proofs[0] as Hex32[],
  root: tree?.root as Hex32,
};
const flip = (hash: Hex32, bit: number): Hex32 => {
  const bytes = Buffer.from(hash.slice(2), "hex");
  bytes[bit >> 3]! ^= 1 << (bit & 7);
  return `0x${bytes.toString("hex")}`;
};

test("a proof with any one bit flipped, in leaf, root or siblings, is refused", () => {
  assert.ok(verifyMerkleProof(given));
  for (let bit = 0; bit < 256; bit += 1) {
    assert.ok(!verifyMerkleProof({ ...given, leaf: flip(given.leaf, bit) }));
    assert.ok(!verifyMerkleProof({ ...given, root: flip(given.root, bit) }));
    for (const at of given.proof.keys()) {
      const proof = given.proof.map((hash, index) => (index === at ? flip(hash, bit) : hash));
      assert.ok(!verifyMerkleProof({ ...given, proof }));
    }
  }
});

test("a proof that is cut, padded or reordered is refused", () => {
  for (const proof of [
    given.proof.slice(1),
    given.proof.slice(0, -1),
    [...given.proof, given.root],
    given.proof.toReversed(),
    [],
  ]) {
    assert.ok(!verifyMerkleProof({ ...given, proof }));
  }
});

test("what is not 32 bytes in hex is refused and never thrown at a verifier", () => {
  for (const bad of ["", "0x", "0x00", given.leaf.slice(2), `${given.leaf}00`, "0xzz"] as Hex32[]) {
    assert.ok(!verifyMerkleProof({ ...given, leaf: bad }));
    assert.ok(!verifyMerkleProof({ ...given, root: bad }));
    assert.ok(!verifyMerkleProof({ ...given, proof: [bad, ...given.proof.slice(1)] }));
    assert.throws(() => buildTree([bad]), TypeError);
    assert.throws(() => rootOfProof(bad, []), TypeError);
  }
});

test("leaves, proofs and roots are read in any case of their hex digits", () => {
  const shouted = {
    leaf: upper(given.leaf),
    proof: given.proof.map(upper),
    root: upper(given.root),
  };
  assert.ok(verifyMerkleProof(shouted));
  const leaves = (tree?.leaves ?? []) as Hex32[];
  assert.equal(buildTree(leaves.map(upper)).root, given.root);
  assert.deepEqual(buildTree(leaves).proofOf(upper(given.leaf)), given.proof);
});

test("there is no tree without leaves and no proof of a leaf that is not in it", () => {
  assert.throws(() => buildTree([]), TypeError);
  assert.throws(() => buildTree([given.leaf]).proofOf(given.root), TypeError);
});

// The tree of `SimpleMerkleTree` in @openzeppelin/merkle-tree: leaves sorted, a complete tree in one array,
// a node is keccak256 of its two children, the smaller first. `MerkleProof.sol` verifies its proofs.
import { keccak256 } from "./keccak.ts";

import { bytesOfHex, hexOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { bytesOfSize } from "./words.ts";

export interface MerkleTree {
  readonly root: Hex32;
  /** The siblings from the leaf up to the root. @throws {TypeError} when the leaf is not in the tree */
  proofOf: (leaf: Hex32) => Hex32[];
}

/**
 * @param leaves hashed twice when they were made (see `leafOf`), so that no inner node can pass as one; their order
 *   does not matter
 * @throws {TypeError} if there is no leaf, or one that is not 32 bytes
 */
export function buildTree(leaves: readonly Hex32[]): MerkleTree {
  if (leaves.length === 0) throw new TypeError("a tree has at least one leaf");
  const sorted = leaves.map((leaf) => hexOfBytes(bytesOfSize(leaf, 32))).toSorted();
  const nodesCount = 2 * sorted.length - 1;
  const nodes = new Uint8Array(nodesCount * 32);
  const indexOfLeaf = new Map<string, number>();
  for (const [position, leaf] of sorted.entries()) {
    const index = nodesCount - 1 - position;
    nodes.set(bytesOfSize(leaf, 32), index * 32);
    indexOfLeaf.set(leaf, index);
  }
  for (let index = sorted.length - 2; index >= 0; index -= 1) {
    const left = nodes.subarray((2 * index + 1) * 32, (2 * index + 2) * 32);
    const right = nodes.subarray((2 * index + 2) * 32, (2 * index + 3) * 32);
    nodes.set(parentOf(left, right), index * 32);
  }
  const hexAt = (index: number): Hex32 => hexOfBytes(nodes.subarray(index * 32, (index + 1) * 32));
  return {
    root: hexAt(0),
    proofOf(leaf) {
      let index = indexOfLeaf.get(leaf.toLowerCase());
      if (index === undefined) throw new TypeError("the leaf is not in the tree");
      const proof: Hex32[] = [];
      for (; index > 0; index = Math.floor((index - 1) / 2)) {
        proof.push(hexAt(index % 2 === 1 ? index + 1 : index - 1));
      }
      return proof;
    },
  };
}

/**
 * The root that a proof leads to. It proves nothing until it is compared.
 *
 * @throws {TypeError} for a hash that is not 32 bytes
 */
export function rootOfProof(leaf: Hex32, proof: readonly Hex32[]): Hex32 {
  let node = bytesOfSize(leaf, 32);
  for (const sibling of proof) node = parentOf(node, bytesOfSize(sibling, 32));
  return hexOfBytes(node);
}

/**
 * Whether the proof leads from the leaf to the root. False also for anything that is not 32 bytes in hex. Compute the
 * leaf yourself from what you want to prove: a leaf that was given to you proves nothing, since trees are padded with
 * random ones.
 */
export function verifyMerkleProof(given: {
  leaf: Hex32;
  proof: readonly Hex32[];
  root: Hex32;
}): boolean {
  const all = [given.leaf, given.root, ...given.proof];
  if (all.some((hash) => bytesOfHex(hash)?.length !== 32)) return false;
  return rootOfProof(given.leaf, given.proof) === given.root.toLowerCase();
}

const pair = new Uint8Array(64);

/** keccak256 of both, the smaller first. */
function parentOf(left: Uint8Array, right: Uint8Array): Uint8Array {
  const isOrdered = isBefore(left, right);
  pair.set(left, isOrdered ? 0 : 32);
  pair.set(right, isOrdered ? 32 : 0);
  return keccak256(pair);
}

function isBefore(left: Uint8Array, right: Uint8Array): boolean {
  for (const [index, byte] of left.entries()) {
    const other = right[index] ?? 0;
    if (byte !== other) return byte < other;
  }
  return true;
}

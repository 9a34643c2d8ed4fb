import assert from "node:assert/strict";
import { test } from "node:test";

import { openProof, readFieldProof } from "./field-proof.ts";

const hash = `0x${"aB".repeat(32)}`;
const address = `0x${"1".repeat(40)}`;
const proof = {
  field: "EMAIL",
  commitment: hash,
  expiresAt: 1_900_000_000,
  leaf: hash,
  root: hash,
  proof: [hash],
  issuer: address,
  transactionHash: hash,
  chainId: 1,
  registry: address,
};

test("a proof from outside is read in one spelling, with as many siblings as a tree can have", () => {
  const read = readFieldProof(openProof({ ...proof, more: 1 }));
  const lower = hash.toLowerCase();
  assert.deepEqual(read, {
    ...proof,
    commitment: lower,
    leaf: lower,
    root: lower,
    transactionHash: lower,
    proof: [lower],
  });
  const siblings = (count: number) =>
    readFieldProof(openProof({ ...proof, proof: Array<string>(count).fill(hash) })).proof.length;
  assert.equal(siblings(64), 64);
  assert.throws(() => siblings(65), { code: "proof_refused", reason: "proof" });
  assert.throws(() => openProof([proof]), { code: "proof_refused", reason: "proof" });
});

import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { buildTree, commitmentOf, hexOfBytes, leafOf, verifyMerkleProof } from "@svc/protocol";
import {
  plantTree,
  readValues,
  type SaltedField,
  statusOfCredential,
  writeValues,
} from "./credential.ts";

const user = "0x52908400098527886e0f7030069857d2e4169ee7";
const salted = (count: number): SaltedField[] =>
  (["IDCARD_NAME", "IDCARD_DOB", "IDCARD_SEX", "IDCARD_COUNTRY", "KYC_LEVEL"] as const)
    .slice(0, count)
    .map((field) => ({
      field,
      data: `value of ${field}`,
      pepper: hexOfBytes(randomBytes(32)),
      expiresAt: 1_900_000_000,
    }));

void test("a tree has a power of two of leaves, at least two, whatever the fields", () => {
  const sizes = [1, 2, 3, 4, 5].map(
    (count) => plantTree(user, salted(count), () => randomBytes(32)).tree.length,
  );
  assert.deepEqual(sizes, [2, 2, 4, 4, 8]);
});

void test("every field has a proof to the root, and a random leaf opens no field", () => {
  const fields = salted(3);
  const { leaves, tree, root } = plantTree(user, fields, () => randomBytes(32));
  const built = buildTree(tree);
  assert.equal(built.root, root);
  for (const { leaf } of leaves)
    assert.ok(verifyMerkleProof({ leaf, proof: built.proofOf(leaf), root }));
  const padding = tree.filter((hash) => leaves.every(({ leaf }) => leaf !== hash));
  assert.equal(padding.length, 1);
});

void test("the order of a tree's leaves does not tell which are fields", () => {
  const { tree } = plantTree(user, salted(5), () => randomBytes(32));
  assert.deepEqual(tree, tree.toSorted());
});

void test("without its pepper a date of birth cannot be found by trying all of them", () => {
  const born = "1990-05-17";
  const pepper = hexOfBytes(randomBytes(32));
  const expiresAt = 1_900_000_000;
  const field = { field: "IDCARD_DOB" as const, data: born, pepper, expiresAt };
  const [known] = plantTree(user, [field], () => randomBytes(32)).leaves;
  assert.ok(known);
  const guess = (data: string, salt: `0x${string}`): string =>
    leafOf({
      user,
      field: "IDCARD_DOB",
      commitment: commitmentOf({ data, pepper: salt }),
      expiresAt,
    });
  const guessed = `0x${"00".repeat(32)}` as const;
  for (let day = 0; day < 365; day += 1) {
    const date = new Date(Date.UTC(1990, 0, 1 + day)).toISOString().slice(0, 10);
    assert.notEqual(guess(date, guessed), known.leaf);
  }
  assert.equal(guess(born, pepper), known.leaf);
});

void test("sealed values are read back as they were written", () => {
  const fields = salted(2);
  const values = readValues(writeValues(fields));
  for (const { field, data, pepper } of fields)
    assert.deepEqual(values.get(field), { data, pepper });
});

void test("what ended a credential first is its status", () => {
  const trusted = { distrustedFrom: null };
  const state = { attestedAt: 100, endedReason: null, expiresAt: 200 };
  assert.equal(statusOfCredential(state, trusted, 150), "live");
  assert.equal(statusOfCredential(state, trusted, 200), "expired");
  assert.equal(statusOfCredential({ ...state, attestedAt: null }, trusted, 150), "pending");
  assert.equal(statusOfCredential(state, { distrustedFrom: 100 }, 150), "distrusted");
  assert.equal(statusOfCredential(state, { distrustedFrom: 101 }, 150), "live");
  for (const endedReason of ["revoked", "withdrawn", "lapsed"] as const)
    assert.equal(statusOfCredential({ ...state, endedReason }, trusted, 150), endedReason);
});

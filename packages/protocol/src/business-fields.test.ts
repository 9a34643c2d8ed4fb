import assert from "node:assert/strict";
import { test } from "node:test";

import {
  businessFieldNames,
  businessFieldOfHash,
  entryOfBusinessField,
  hashOfBusinessField,
  leafFieldOf,
} from "./business-fields.ts";

test("the catalogue has 167 business fields, each found by its hash in any case", () => {
  assert.equal(businessFieldNames.length, 167);
  for (const name of businessFieldNames) {
    const hash = hashOfBusinessField(name);
    assert.equal(businessFieldOfHash(hash), name);
    assert.equal(businessFieldOfHash(hash.toUpperCase()), name);
  }
  assert.equal(businessFieldOfHash(`0x${"00".repeat(32)}`), null);
});

test("the hash of a name is keccak256 of its text", () => {
  assert.equal(
    hashOfBusinessField("BUSINESS_LEGAL_NAME"),
    "0x5db4699413b7a3d76aaa16a257b9baee827e1de5fa8792e73d767f922dae5fce",
  );
});

test("whom a field is about follows from the catalogue", () => {
  assert.equal(entryOfBusinessField("BUSINESS_DIRECTOR_NAME").naturalPersonPii, true);
  assert.equal(entryOfBusinessField("BUSINESS_DIRECTOR_COUNT").naturalPersonPii, false);
  assert.equal(entryOfBusinessField("BUSINESS_DECLARED_LEGAL_NAME").basis, "declared");
});

test("a leaf names the person it tells of", () => {
  assert.equal(leafFieldOf({ name: "BUSINESS_LEGAL_NAME", subject: "" }), "BUSINESS_LEGAL_NAME");
  assert.equal(
    leafFieldOf({ name: "BUSINESS_DIRECTOR_NAME", subject: "director-1" }),
    "BUSINESS_DIRECTOR_NAME/director-1",
  );
});

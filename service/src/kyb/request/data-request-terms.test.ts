import assert from "node:assert/strict";
import { test } from "node:test";
import { hashOfBusinessField } from "@svc/protocol";
import { readAskedFields } from "./data-request-terms.ts";

await test("a repeated name is asked for once, also if it is given by its hash, and one in both lists is required", () => {
  const name = "BUSINESS_LEGAL_NAME";
  const hash = hashOfBusinessField(name);
  const optional = "BUSINESS_WEBSITE";
  for (const fields of [
    [name, name],
    [name, hash],
    [hash, name, hash],
  ])
    assert.deepEqual(
      readAskedFields({ fields, optionalFields: [optional, name, optional, hash] }),
      {
        fields: [name],
        optionalFields: [optional],
      },
    );
});

await test("at most 40 different names are asked for together", () => {
  const names = Array.from({ length: 41 }, (_, at) => `FIELD_${at}`);
  const repeated = names.slice(0, 40);
  assert.equal(readAskedFields({ fields: repeated, optionalFields: repeated }).fields.length, 40);
  for (const count of [1, 40])
    assert.throws(
      () => readAskedFields({ fields: names.slice(0, count), optionalFields: names.slice(count) }),
      /at most 40 together/,
    );
});

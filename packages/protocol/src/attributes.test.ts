import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import {
  attributeOfField,
  entryOfField,
  fieldNames,
  fieldsOfAttribute,
  fieldsOfName,
  isAttribute,
  nameOfAttribute,
  parentNames,
} from "./attributes.ts";
import { catalogueSource } from "../tools/field-catalogue.ts";

test("the generated catalogue is the one that fields.json gives", () => {
  const path = join(import.meta.dirname, "field-catalogue.generated.ts");
  assert.equal(readFileSync(path, "utf8"), catalogueSource(), "run tools/field-catalogue.ts");
  assert.equal(fieldNames.length, 142);
  assert.equal(parentNames.length, 11);
});

test("every catalogue name has an attribute of its own that leads back to it", () => {
  const names = [...fieldNames, ...parentNames];
  assert.equal(new Set(names.map(attributeOfField)).size, names.length);
  for (const name of names) {
    assert.ok(isAttribute(attributeOfField(name)));
    assert.equal(nameOfAttribute(attributeOfField(name)), name);
  }
  assert.equal(attributeOfField("IDCARD_DOB"), "idcard-dob");
});

test("the aliases of the links name what they are said to name", () => {
  assert.equal(nameOfAttribute("full-name"), "NAME_PARENT_FIELD");
  assert.equal(nameOfAttribute("date-of-birth"), "DOB_PARENT_FIELD");
  assert.equal(nameOfAttribute("email"), "EMAIL");
  assert.equal(nameOfAttribute("phone"), "PHONE");
  assert.deepEqual(fieldsOfAttribute("date-of-birth"), [
    "IDCARD_DOB",
    "PASSPORT_DOB",
    "RESIDENCE_PERMIT_DOB",
    "DRIVER_LICENSE_DOB",
  ]);
});

test("names outside the catalogue lead nowhere", () => {
  for (const text of [
    "business",
    "",
    "to-string",
    "constructor",
    "EMAIL",
    "idcard_dob",
    "e-mail",
    "toString",
  ]) {
    assert.equal(nameOfAttribute(text), null, text);
    assert.deepEqual(fieldsOfAttribute(text), [], text);
  }
});

test("a field knows its group, type and sensitivity; a parent accepts concrete fields only", () => {
  assert.deepEqual(entryOfField("IDCARD_FACE_IMAGE"), {
    group: "IDCARD",
    type: "image",
    sensitivity: "biometric",
    derived: false,
  });
  assert.deepEqual(fieldsOfName("EMAIL"), ["EMAIL"]);
  for (const parent of parentNames)
    assert.ok(fieldsOfName(parent).every((name) => fieldNames.includes(name)));
});

test("the package runs in a browser: no module of Node, no Buffer, no dependency but noble and hash-wasm", () => {
  const sources = readdirSync(import.meta.dirname, { recursive: true, encoding: "utf8" }).filter(
    (path) => path.endsWith(".ts") && !path.endsWith(".test.ts"),
  );
  assert.ok(sources.length > 20);
  for (const path of sources) {
    const text = readFileSync(join(import.meta.dirname, path), "utf8");
    const outside = [...text.matchAll(/from "([^"]+)"/g)].map(([, specifier = ""]) => specifier);
    assert.deepEqual(
      outside.filter((each) => !/^\.{1,2}\/|^@noble\/|^hash-wasm\b/.test(each)),
      [],
      path,
    );
    assert.ok(
      !/\bBuffer\b|\bprocess\b|\brequire\(/.test(text.replaceAll(/^\s*(?:\/\/|\*).*$/gm, "")),
      path,
    );
  }
});

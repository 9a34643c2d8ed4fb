import assert from "node:assert/strict";
import { test } from "node:test";
import type { FieldName } from "@svc/protocol";
import { deriveFields } from "./derived-fields.ts";

const at = (date: string): number => Date.parse(`${date}T12:00:00Z`) / 1000;
const first = (month: string): number => Date.parse(`${month}-01T00:00:00Z`) / 1000;

function derive(given: Partial<Record<FieldName, string>>, now: string, expires: string) {
  const fields = Object.entries(given).map(([field, data]) => ({
    field: field as FieldName,
    data,
  }));
  const derived = deriveFields(fields, { now: at(now), expiresAt: at(expires) });
  return new Map(derived.map(({ field, data, expiresAt }) => [field, { data, expiresAt }]));
}

void test("ages are answered whatever the answer, from the day of the birthday on", () => {
  const before = derive({ IDCARD_DOB: "2008-11-22" }, "2026-11-21", "2035-06-15");
  assert.equal(before.get("AGE_OVER_16")?.data, "true");
  assert.equal(before.get("AGE_OVER_18")?.data, "false");
  assert.equal(before.get("AGE_OVER_21")?.data, "false");
  assert.equal(before.get("AGE_OVER_65")?.data, "false");
  assert.equal(before.get("AGE_IN_YEARS")?.data, "17");
  assert.equal(before.get("AGE_BIRTH_YEAR")?.data, "2008");
  const after = derive({ IDCARD_DOB: "2008-11-22" }, "2026-11-22", "2035-06-15");
  assert.equal(after.get("AGE_OVER_18")?.data, "true");
  assert.equal(after.get("AGE_IN_YEARS")?.data, "18");
});

void test("an end is the first of a month, and never later than the answer's change or the document", () => {
  const derived = derive({ PASSPORT_DOB: "2010-03-22" }, "2026-11-21", "2035-06-15");
  assert.equal(derived.get("AGE_OVER_16")?.expiresAt, first("2035-06"));
  assert.equal(derived.get("AGE_OVER_18")?.expiresAt, first("2028-03"));
  assert.equal(derived.get("AGE_OVER_65")?.expiresAt, first("2035-06"));
  assert.equal(derived.get("AGE_IN_YEARS")?.expiresAt, first("2027-03"));
  assert.equal(derived.get("AGE_BIRTH_YEAR")?.expiresAt, first("2035-06"));
});

void test("a person born on 29 February is a year older on 1 March", () => {
  const born = { IDCARD_DOB: "2008-02-29" };
  const before = derive(born, "2026-02-28", "2035-06-15");
  assert.equal(before.get("AGE_OVER_18")?.data, "false");
  const after = derive(born, "2026-03-01", "2035-06-15");
  assert.equal(after.get("AGE_OVER_18")?.data, "true");
});

void test("a person born on a day that has begun only in the far east is 0 years old", () => {
  const derived = derive({ IDCARD_DOB: "2026-11-22" }, "2026-11-21", "2035-06-15");
  assert.deepEqual(derived.get("AGE_IN_YEARS"), { data: "0", expiresAt: first("2027-11") });
});

void test("nationality and residence say whether one of the countries is in the EU or EFTA", () => {
  const derive1 = (nationality: string) =>
    derive({ IDCARD_NATIONALITY: nationality }, "2026-11-21", "2035-06-15");
  assert.equal(derive1("CHE").get("NATIONALITY_IN_EU_EFTA")?.data, "true");
  assert.equal(derive1("USA,ITA").get("NATIONALITY_IN_EU_EFTA")?.data, "true");
  assert.equal(derive1("GBR").get("NATIONALITY_IN_EU_EFTA")?.data, "false");
  const address = derive({ ADDRESS_COUNTRY: "USA" }, "2026-11-21", "2035-06-15");
  assert.deepEqual(
    [...address],
    [["RESIDENCE_IN_EU_EFTA", { data: "false", expiresAt: first("2035-06") }]],
  );
});

void test("nothing follows from a document without these fields", () => {
  assert.equal(derive({ EMAIL: "a@example.com" }, "2026-11-21", "2035-06-15").size, 0);
});

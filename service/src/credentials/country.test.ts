import assert from "node:assert/strict";
import { test } from "node:test";
import { isCountryCode, isInEuEfta } from "./country.ts";

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ".split("");
const everyText = letters.flatMap((a) => letters.flatMap((b) => letters.map((c) => a + b + c)));

void test("a country is one of the 249 of ISO 3166-1, or of the five further codes of documents", () => {
  const further = "RKS XXA XXB XXC XXX".split(" ");
  assert.deepEqual(further.filter(isCountryCode), further);
  assert.equal(everyText.filter(isCountryCode).length, 249 + further.length);
});

void test("the European Union has 27 members, and EFTA has four", () => {
  // By when they joined.
  const union =
    "BEL DEU FRA ITA LUX NLD DNK IRL GRC ESP PRT AUT FIN SWE CYP CZE EST HUN LVA LTU MLT POL SVK SVN BGR ROU HRV";
  const association = "CHE NOR ISL LIE";
  const expected = `${union} ${association}`.split(" ");
  assert.equal(expected.length, 27 + 4);
  assert.deepEqual(everyText.filter(isInEuEfta), expected.toSorted());
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { businessFieldNames, entryOfBusinessField } from "@svc/protocol";
import { requestedFields } from "../request/data-request.ts";
import { listPrices, priceOf, totalOf } from "./pricing.ts";

test("every field of the catalogue has a price, by tier 4.00, 2.50 or 1.00", () => {
  const prices = listPrices();
  assert.deepEqual(
    prices.map(({ name }) => name),
    businessFieldNames,
  );
  // field_not_priced cannot occur yet: it is for a field that is added without a tier.
  for (const name of businessFieldNames) assert.notEqual(priceOf(name), null, name);
  const tiers = new Map(prices.map(({ tier, cents }) => [tier, cents]));
  assert.deepEqual(
    [...tiers].toSorted(([a], [b]) => a.localeCompare(b)),
    [
      ["A", 100],
      ["B", 250],
      ["C", 400],
    ],
  );
});

test("what tells of a person is tier C, seven groups are tier B, and the rest is tier A", () => {
  const middle = new Set("registry document licence tax structure aggregate screening".split(" "));
  for (const name of businessFieldNames) {
    const { group, naturalPersonPii } = entryOfBusinessField(name);
    const impersonal = middle.has(group) ? "B" : "A";
    assert.equal(priceOf(name)?.tier, naturalPersonPii ? "C" : impersonal, name);
  }
});

test("a sole proprietor's fields are personal and cost what they always do", () => {
  const asked = {
    fields: ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"],
    optionalFields: ["BUSINESS_DIRECTOR_COUNT"],
  } as const;
  const [company, sole] = [requestedFields(asked, false), requestedFields(asked, true)];
  assert.deepEqual(
    company.map((field) => field.naturalPersonPii),
    [false, true, false],
  );
  assert.ok(sole.every((field) => field.naturalPersonPii));
  assert.equal(totalOf(company), 750);
  assert.equal(totalOf(sole), 750);
});

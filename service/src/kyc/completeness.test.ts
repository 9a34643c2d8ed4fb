import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { type FieldName, fieldsOfName, parentNames } from "@svc/protocol";
import { isComplete, type LinkNames } from "./completeness.ts";

const cases: readonly {
  name: string;
  required: LinkNames["required"];
  offered?: LinkNames["offered"];
  complete: readonly FieldName[][];
  refused: readonly FieldName[][];
}[] = [
  {
    name: "a parent name is answered by any one of its fields",
    required: ["DOB_PARENT_FIELD"],
    complete: [["IDCARD_DOB"], ["PASSPORT_DOB"]],
    refused: [[], ["IDCARD_SEX"], ["IDCARD_DOB", "PASSPORT_DOB"]],
  },
  {
    name: "one field answers a parent and its own name",
    required: ["IDCARD_DOB", "DOB_PARENT_FIELD"],
    complete: [["IDCARD_DOB"], ["IDCARD_DOB", "PASSPORT_DOB"]],
    refused: [["PASSPORT_DOB"], ["IDCARD_DOB", "PASSPORT_DOB", "DRIVER_LICENSE_DOB"]],
  },
  {
    name: "an optional name answers a required parent, beside another field or alone",
    required: ["DOB_PARENT_FIELD"],
    offered: ["PASSPORT_DOB"],
    complete: [["PASSPORT_DOB"], ["IDCARD_DOB"], ["IDCARD_DOB", "PASSPORT_DOB"]],
    refused: [[], ["IDCARD_DOB", "DRIVER_LICENSE_DOB"]],
  },
  {
    name: "an optional name may be withheld, and nothing unasked goes",
    required: ["EMAIL"],
    offered: ["PHONE", "SEX_PARENT_FIELD"],
    complete: [["EMAIL"], ["EMAIL", "PHONE"], ["EMAIL", "IDCARD_SEX"]],
    refused: [["PHONE"], ["EMAIL", "ADDRESS_CITY"], ["EMAIL", "IDCARD_SEX", "PASSPORT_SEX"]],
  },
];

for (const { name, required, offered = [], complete, refused } of cases)
  test(name, () => {
    for (const released of complete)
      assert.equal(isComplete({ required, offered }, released), true, released.join());
    for (const released of refused)
      assert.equal(isComplete({ required, offered }, released), false, released.join());
  });

/**
 * Every set of fields from which a wallet can choose: one for each required name, one or none for each optional one.
 */
function choicesOf({ required, offered }: LinkNames): FieldName[][] {
  const asked = [
    ...required.map((name) => fieldsOfName(name).map((field) => [field])),
    ...offered.map((name) => [[], ...fieldsOfName(name).map((field) => [field])]),
  ];
  return asked.reduce<FieldName[][]>(
    (chosen, answers) =>
      chosen.flatMap((fields) => answers.map((answer) => [...new Set([...fields, ...answer])])),
    [[]],
  );
}

const spell = (fields: readonly FieldName[]): string => fields.toSorted().join();
const parents = ["DOB_PARENT_FIELD", "SEX_PARENT_FIELD"] as const;
const fields = [...parents.flatMap((name) => fieldsOfName(name)), "EMAIL" as const];
const anyLink: fc.Arbitrary<LinkNames> = fc
  .uniqueArray(fc.tuple(fc.constantFrom(...parents, ...fields), fc.boolean()), {
    maxLength: 6,
    selector: ([name]) => name,
  })
  .map((asked) => ({
    required: asked.filter(([, isRequired]) => isRequired).map(([name]) => name),
    offered: asked.filter(([, isRequired]) => !isRequired).map(([name]) => name),
  }));

test("exactly the sets of fields that a wallet can choose are complete", () => {
  fc.assert(
    fc.property(anyLink, fc.subarray(fields), (link, others) => {
      const choices = choicesOf(link);
      for (const released of choices) assert.equal(isComplete(link, released), true);
      const isChoice = choices.some((released) => spell(released) === spell(others));
      assert.equal(isComplete(link, others), isChoice, spell(others));
    }),
  );
});

test("no field belongs to two parents", () => {
  const all = parentNames.flatMap((name) => fieldsOfName(name));
  assert.equal(new Set(all).size, all.length);
});

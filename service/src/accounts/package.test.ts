import assert from "node:assert/strict";
import { test } from "node:test";
import { fieldNames } from "@svc/protocol";
import { Problem } from "../platform/http/problems.ts";
import { checkPackage } from "./package.ts";

const given = { fields: null, transfers: 1, priceRappen: 0n };
const most = { fields: fieldNames.slice(0, 40), transfers: 10_000_000 };

void test("a package has up to 40 fields and ten million transfers, and may be free", () => {
  checkPackage(given);
  checkPackage({ ...given, ...most, priceRappen: 10n ** 12n });
});

const refused: Record<string, Partial<Parameters<typeof checkPackage>[0]>> = {
  "no field": { fields: [] },
  "41 fields": { fields: fieldNames.slice(0, 41) },
  "a field twice": { fields: ["EMAIL", "EMAIL"] },
  "a field that is none": { fields: ["SHOE_SIZE"] },
  "no transfer": { transfers: 0 },
  "more than ten million transfers": { transfers: 10_000_001 },
  "half a transfer": { transfers: 1.5 },
  "a price below 0": { priceRappen: -1n },
};
for (const [what, change] of Object.entries(refused))
  void test(`a package with ${what} is refused`, () => {
    assert.throws(
      () => checkPackage({ ...given, ...change }),
      (error) => error instanceof Problem && error.reason === "invalid_request",
    );
  });

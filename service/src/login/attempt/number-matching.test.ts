import assert from "node:assert/strict";
import { test } from "node:test";
import { Problem } from "../../platform/http/problems.ts";
import type { Attempt } from "./attempt.ts";
import {
  checkNumberGiven,
  drawDigits,
  isNumberRight,
  needsNumber,
  shownDigits,
} from "./number-matching.ts";

/** An attempt whose wallet was told whether to ask for digits. */
function claimed(numberMatching: boolean): Attempt {
  const claims = { domain: "shop.example", number_matching: numberMatching };
  const segment = Buffer.from(JSON.stringify(claims)).toString("base64url");
  return { digits: "07", requestObject: `e30.${segment}.c2ln` } as Attempt;
}

const refused = (reason: string) => (error: unknown) =>
  error instanceof Problem && error.reason === reason;

test("a QR login needs the digits unless its client does without, and a code that does not rotate always does", () => {
  const cases = [
    [true, "qr", false, true],
    [false, "qr", false, false],
    [false, "qr", true, true],
    [true, "app-link", false, false],
  ] as const;
  for (const [numberMatching, channel, isStatic, expected] of cases)
    assert.equal(needsNumber({ numberMatching }, { channel, isStatic }), expected);
});

test("a number has two digits, even below ten, and takes all of a hundred values", () => {
  assert.equal(drawDigits({ below: () => 7 }), "07");
  assert.equal(drawDigits({ below: (bound) => bound - 1 }), "99");
});

test("the page shows the digits only where the wallet asks for them", () => {
  assert.equal(shownDigits(claimed(true)), "07");
  assert.equal(shownDigits(claimed(false)), null);
});

test("a number has to come where it is needed, and nowhere else", () => {
  checkNumberGiven(claimed(true), "42");
  checkNumberGiven(claimed(false), "");
  assert.throws(() => checkNumberGiven(claimed(true), ""), refused("number_required"));
  assert.throws(() => checkNumberGiven(claimed(false), "42"), refused("signature_wrong"));
});

test("only the digits of the page are right", () => {
  const numbers = Array.from({ length: 100 }, (_, number) => String(number).padStart(2, "0"));
  assert.deepEqual(
    numbers.filter((number) => isNumberRight(claimed(true), number)),
    ["07"],
  );
  for (const wrong of ["7", "007", ""]) assert.equal(isNumberRight(claimed(true), wrong), false);
  assert.equal(isNumberRight(claimed(false), ""), true);
});

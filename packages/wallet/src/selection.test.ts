import assert from "node:assert/strict";
import { test } from "node:test";
import { checkValues, readListed, type HeldCredential } from "./held-credential.ts";
import { chooseSources } from "./selection.ts";
import { issue, now } from "../test/fake-fields.ts";
import { addressOf } from "../test/test-wallet.ts";

const alice = addressOf("alice");

function hold(...given: Parameters<typeof issue>): HeldCredential {
  const listed = readListed(issue(...given), "https://login.example");
  const held = listed === null ? null : checkValues(alice, listed);
  assert.ok(held !== null);
  return held;
}

test("fields come from the side that the request is of, and from the live one first where nobody says", () => {
  const live = hold(alice, { EMAIL: "alice@example.com" });
  const sandbox = hold(
    alice,
    { EMAIL: "made-up@example.com", PHONE: "+41790000000" },
    { environment: "sandbox", issuedAt: 999_999 },
  );
  for (const [environment, email, phone] of [
    ["live", "alice@example.com", undefined],
    ["sandbox", "made-up@example.com", "+41790000000"],
    [undefined, "alice@example.com", "+41790000000"],
  ] as const) {
    const asked = ["EMAIL", "PHONE"].map((name) => ({ name, isOptional: false }));
    const terms = { now, isKnown: true, mustHold: false, environment };
    const choices = chooseSources([sandbox, live], asked, terms);
    assert.deepEqual(
      choices.map(({ source }) => source?.data),
      [email, phone],
    );
  }
});

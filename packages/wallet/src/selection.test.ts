import assert from "node:assert/strict";
import { test } from "node:test";
import { decideRelease } from "./field-request.ts";
import { checkValues, readListed, type HeldCredential } from "./held-credential.ts";
import { WalletRefusal } from "./refusal.ts";
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

test("where it is proved, a yes/no field fits with exactly true, and any other field with its value", () => {
  const terms = { now, isKnown: true, mustHold: true, environment: undefined };
  const fits = (field: "AGE_OVER_18" | "EMAIL", value: string): boolean => {
    const held = [hold(alice, { [field]: value })];
    const [choice] = chooseSources(held, [{ name: field, isOptional: false }], terms);
    return choice?.source !== null;
  };
  assert.ok(fits("AGE_OVER_18", "true"));
  for (const value of ["false", "TRUE", "yes", "1", ""]) assert.ok(!fits("AGE_OVER_18", value));
  assert.ok(fits("EMAIL", "false"));
});

test("a field that answers two names goes for both of them or for neither", () => {
  const held = [hold(alice, { IDCARD_NAME: "Alice Muster", EMAIL: "alice@example.com" })];
  const release = (required: string[], optional: string[], without: string): readonly string[] => {
    const asked = [
      ...required.map((name) => ({ name, isOptional: false })),
      ...optional.map((name) => ({ name, isOptional: true })),
    ];
    const terms = { now, isKnown: true, mustHold: false, environment: undefined };
    const released = decideRelease(chooseSources(held, asked, terms), { without: [without] });
    return released.map(({ field }) => field);
  };
  const [field, parent] = ["IDCARD_NAME", "NAME_PARENT_FIELD"];
  for (const [required, optional, without, said] of [
    [[parent], ["EMAIL"], field, `${field} goes as ${parent}, which is required: decline`],
    [[parent], [field, "EMAIL"], field, `${field} goes as ${parent}, which is required: decline`],
    [[field], [parent, "EMAIL"], parent, `${parent} goes as ${field}, which is required: decline`],
    [[parent], [field, "EMAIL"], parent, `${parent} is required: decline`],
  ] as const)
    assert.throws(
      () => release([...required], [...optional], without),
      (error) => error instanceof WalletRefusal && error.message.startsWith(said),
    );
  for (const without of [field, parent])
    assert.deepEqual(release(["EMAIL"], [field, parent], without), ["EMAIL"]);
});

test("where everything is withheld there is nothing to approve", () => {
  const held = [hold(alice, { IDCARD_NAME: "Alice Muster", EMAIL: "alice@example.com" })];
  const asked = ["IDCARD_NAME", "EMAIL", "PHONE"].map((name) => ({ name, isOptional: true }));
  const terms = { now, isKnown: true, mustHold: false, environment: undefined };
  const choices = chooseSources(held, asked, terms);
  const release = (...without: string[]) =>
    decideRelease(choices, { without }).map(({ field }) => field);
  assert.deepEqual(release("EMAIL"), ["IDCARD_NAME"]);
  assert.throws(
    () => release("EMAIL", "IDCARD_NAME"),
    (error) => error instanceof WalletRefusal && error.code === "no_matching_data",
  );
});

test("whoever holds nothing of what is asked is told what that is, also where all of it is optional", () => {
  const asked = ["EMAIL", "PHONE"].map((name) => ({ name, isOptional: true }));
  const terms = { now, isKnown: true, mustHold: false, environment: undefined };
  assert.throws(
    () => decideRelease(chooseSources([], asked, terms), { without: [] }),
    (error) => error instanceof WalletRefusal && error.message.endsWith("fits EMAIL, PHONE"),
  );
});

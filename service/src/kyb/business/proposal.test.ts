import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Address,
  type BusinessRule,
  type Charter,
  encodeCharter,
  governanceActs,
} from "@svc/protocol";
import { Problem } from "../../platform/http/problems.ts";
import { charterOf, parseHash, planCharter, ruleOf } from "./proposal.ts";

const alice: Address = `0x${"a1".repeat(20)}`;

const charterBy = (governance: BusinessRule): Charter => ({
  rules: { signature_requests: "MAJORITY", data_requests: "MAJORITY", governance },
  members: [{ address: alice, isVoting: true }],
});

const changeTo = (charter: Charter) =>
  ({
    operation: "changeCharter",
    arguments: governanceActs.changeCharter(encodeCharter(charter)).arguments,
  }) as const;

/** The rule of governance before and after the change, and the one by which the change is decided. */
const changes: readonly [BusinessRule, BusinessRule, BusinessRule][] = [
  ["MAJORITY", "MAJORITY", "MAJORITY"],
  ["MAJORITY", "UNANIMOUS", "UNANIMOUS"],
  ["UNANIMOUS", "MAJORITY", "UNANIMOUS"],
  ["UNANIMOUS", "UNANIMOUS", "UNANIMOUS"],
];

test("the stricter of the old and the new rule of governance decides a new charter", () => {
  for (const [before, after, deciding] of changes)
    assert.equal(
      ruleOf(changeTo(charterBy(after)), charterBy(before)),
      deciding,
      `${before} to ${after}`,
    );
});

test("a majority removes a member, and the rule of governance decides every other act", () => {
  const charter = charterBy("UNANIMOUS");
  const removal = { operation: "startRemoval", arguments: "0x" } as const;
  assert.equal(ruleOf(removal, charter), "MAJORITY");
  for (const operation of ["moveTo", "withdraw"] as const)
    assert.equal(ruleOf({ operation, arguments: "0x" }, charter), "UNANIMOUS");
});

test("a proposed charter is read back from the arguments of the contract's function", () => {
  const charter = charterBy("UNANIMOUS");
  assert.deepEqual(charterOf(changeTo(charter)), charter);
  assert.equal(charterOf({ operation: "moveTo", arguments: "0x" }), null);
});

test("a charter that changes nothing is refused", () => {
  const members = [{ address: alice, name: "Alice", votingRights: true }];
  assert.throws(
    () => planCharter(charterBy("MAJORITY"), { operation: "changeCharter", members }),
    (error) => error instanceof Problem && error.reason === "invalid_request",
  );
});

test("the hash of a signature to take back is 32 bytes, in any case of its digits", () => {
  assert.equal(parseHash(`0x${"AB".repeat(32)}`), `0x${"ab".repeat(32)}`);
  for (const text of ["", `0x${"ab".repeat(31)}`, `0x${"zz".repeat(32)}`])
    assert.throws(() => parseHash(text), Problem, text);
});

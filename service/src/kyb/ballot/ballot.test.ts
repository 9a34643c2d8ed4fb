import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, type BusinessRule, businessCategory, type Charter } from "@svc/protocol";
import { electorateOf, isOutOfReach } from "./ballot.ts";

const addressOf = (at: number): Address => `0x${(at + 1).toString(16).padStart(40, "f")}`;

/** A charter with this many voting members, some without a vote, and one rule for all categories. */
function charterOf(rule: BusinessRule, voters: number, silent = 0): Charter {
  return {
    rules: { signature_requests: rule, data_requests: rule, governance: rule },
    members: Array.from({ length: voters + silent }, (_, at) => ({
      address: addressOf(at),
      isVoting: at < voters,
    })),
  };
}

/** Voting members, approvals that are enough, refusals that make an approval impossible. */
const rows: readonly [BusinessRule, number, number, number][] = [
  ["MAJORITY", 1, 1, 1],
  ["MAJORITY", 2, 2, 1],
  ["MAJORITY", 3, 2, 2],
  ["MAJORITY", 4, 3, 2],
  ["MAJORITY", 10, 6, 5],
  ["MAJORITY", 25, 13, 13],
  ["UNANIMOUS", 1, 1, 1],
  ["UNANIMOUS", 2, 2, 1],
  ["UNANIMOUS", 3, 3, 1],
  ["UNANIMOUS", 4, 4, 1],
  ["UNANIMOUS", 10, 10, 1],
  ["UNANIMOUS", 25, 25, 1],
];

test("in every category the rule decides how many approvals are enough, and how many refusals end a vote early", () => {
  for (const [rule, size, needed, refusals] of rows)
    for (const silent of [0, 3])
      for (const category of Object.values(businessCategory)) {
        const electorate = electorateOf(charterOf(rule, size, silent), { category });
        const shown = `${rule} of ${size} with ${silent} without a vote`;
        assert.equal(electorate.voters.length, size, shown);
        assert.equal(electorate.needed, needed, shown);
        assert.equal(isOutOfReach(electorate, refusals - 1), false, shown);
        assert.equal(isOutOfReach(electorate, refusals), true, shown);
      }
});

test("a login follows the rule of signatures, and each other category its own", () => {
  const { members } = charterOf("MAJORITY", 5);
  const rules = { signature_requests: "UNANIMOUS", data_requests: "MAJORITY" } as const;
  const charter: Charter = { members, rules: { ...rules, governance: "MAJORITY" } };
  const neededFor = (name: keyof typeof businessCategory): number =>
    electorateOf(charter, { category: businessCategory[name] }).needed;
  assert.deepEqual(
    (["signature", "login", "data", "governance"] as const).map(neededFor),
    [5, 5, 3, 3],
  );
});

test("a removal is decided by the majority of the other members, without a vote of its member", () => {
  for (const [size, needed] of [
    [2, 1],
    [3, 2],
    [4, 2],
    [10, 5],
    [25, 13],
  ] as const) {
    const electorate = electorateOf(charterOf("UNANIMOUS", size), {
      category: businessCategory.governance,
      rule: "MAJORITY",
      without: addressOf(0),
    });
    assert.equal(electorate.voters.length, size - 1);
    assert.ok(!electorate.voters.includes(addressOf(0)));
    assert.equal(electorate.needed, needed);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  isExpirationInRange,
  isOngoing,
  onlyStepOf,
  type Status,
  statuses,
  stepOf,
  type Trigger,
  triggers,
} from "./order.ts";

/** Decisions section 5, the table. */
const allowed: [from: Status, trigger: Trigger, to: string][] = [
  ["PENDING", "approved", "INITIATING"],
  ["PENDING", "declined", "FAILED USER_DECLINED"],
  ["PENDING", "expired", "FAILED EXPIRED"],
  ["PENDING", "cancelled", "FAILED CANCELLED"],
  ["PENDING", "mismatched", "FAILED INVALID_CONFIRM_DATA"],
  ["INITIATING", "initiate-final", "INITIATED"],
  ["INITIATING", "initiate-reverted", "FAILED INITIATE_TX_FAILED"],
  ["INITIATING", "overdue", "FAILED INITIATE_TX_FAILED"],
  ["INITIATED", "leaves-live", "CONFIRMING"],
  ["INITIATED", "leaves-dead", "FAILED FIELD_REVOKED"],
  ["CONFIRMING", "confirm-final", "CONFIRMED"],
  ["CONFIRMING", "confirm-reverted", "FAILED CONFIRM_TX_FAILED"],
  ["CONFIRMED", "requested", "PENDING"],
  ["FAILED", "requested", "PENDING"],
];

test("an order makes every transition of the table and no other", () => {
  for (const status of statuses) {
    for (const trigger of triggers) {
      const row = allowed.find(([from, cause]) => from === status && cause === trigger);
      const step = stepOf(status, trigger);
      const said = step === null ? undefined : [step.to, step.failureReason].join(" ").trim();
      assert.equal(said, row?.[2], `${status} ${trigger}`);
    }
  }
});

test("a trigger with one transition names it", () => {
  assert.deepEqual(onlyStepOf("expired"), {
    from: "PENDING",
    to: "FAILED",
    failureReason: "EXPIRED",
  });
});

test("an order is ongoing from the approval to its end", () => {
  assert.deepEqual(statuses.filter(isOngoing), ["INITIATING", "INITIATED", "CONFIRMING"]);
});

test("an expiration lies 5 to 15 minutes ahead, to the second", () => {
  const now = 1_800_000_000;
  const ahead = [-1, 0, 299, 300, 900, 901, 300.5, Number.NaN];
  assert.deepEqual(
    ahead.filter((seconds) => isExpirationInRange(now + seconds, now)),
    [300, 900],
  );
});

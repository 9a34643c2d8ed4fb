import assert from "node:assert/strict";
import { test } from "node:test";
import { isExpirationInRange, isOngoing, statuses, type Step, steps } from "./order.ts";

/** The table of decisions section 5, except its last two rows, the repeated request, which `isOngoing` decides. */
const table: Record<keyof typeof steps, string> = {
  approved: "PENDING -> INITIATING",
  declined: "PENDING -> FAILED USER_DECLINED",
  expired: "PENDING -> FAILED EXPIRED",
  cancelled: "PENDING -> FAILED CANCELLED",
  mismatched: "PENDING -> FAILED INVALID_CONFIRM_DATA",
  "initiate-final": "INITIATING -> INITIATED",
  "initiate-reverted": "INITIATING -> FAILED INITIATE_TX_FAILED",
  overdue: "INITIATING -> FAILED INITIATE_TX_FAILED",
  "leaves-live": "INITIATED -> CONFIRMING",
  "leaves-dead": "INITIATED -> FAILED FIELD_REVOKED",
  "confirm-final": "CONFIRMING -> CONFIRMED",
  "confirm-reverted": "CONFIRMING -> FAILED CONFIRM_TX_FAILED",
};

const say = ({ from, to, failureReason }: Step): string =>
  [`${from} -> ${to}`, failureReason].join(" ").trim();

test("an order makes every transition of the table and no other", () => {
  const made = Object.entries<Step>(steps).map(([trigger, step]) => [trigger, say(step)]);
  assert.deepEqual(Object.fromEntries(made), table);
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

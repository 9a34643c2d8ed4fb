// The rules of an order (decisions section 5): what it may become, and why. No clock, no chance, no database.

export const statuses = [
  "PENDING",
  "INITIATING",
  "INITIATED",
  "CONFIRMING",
  "CONFIRMED",
  "FAILED",
] as const;
export type Status = (typeof statuses)[number];

export const failureReasons = [
  "USER_DECLINED",
  "EXPIRED",
  "CANCELLED",
  "INVALID_CONFIRM_DATA",
  "FIELD_REVOKED",
  "INITIATE_TX_FAILED",
  "CONFIRM_TX_FAILED",
] as const;
export type FailureReason = (typeof failureReasons)[number];

export interface Step {
  readonly from: Status;
  readonly to: Status;
  readonly failureReason?: FailureReason;
}

const fail = (from: Status, failureReason: FailureReason): Step => ({
  from,
  to: "FAILED",
  failureReason,
});

/**
 * Every transition within an attempt, by what causes it. An order that does not have the status `from` stays as it is.
 * Once an attempt has ended, the same request begins the next one.
 */
export const steps = {
  approved: { from: "PENDING", to: "INITIATING" },
  declined: fail("PENDING", "USER_DECLINED"),
  expired: fail("PENDING", "EXPIRED"),
  cancelled: fail("PENDING", "CANCELLED"),
  // The fourth validly signed result that matches nothing; the first three change nothing.
  mismatched: fail("PENDING", "INVALID_CONFIRM_DATA"),
  "initiate-final": { from: "INITIATING", to: "INITIATED" },
  "initiate-reverted": fail("INITIATING", "INITIATE_TX_FAILED"),
  // 72 hours after the approval, still not INITIATED.
  overdue: fail("INITIATING", "INITIATE_TX_FAILED"),
  "leaves-live": { from: "INITIATED", to: "CONFIRMING" },
  "leaves-dead": fail("INITIATED", "FIELD_REVOKED"),
  "confirm-final": { from: "CONFIRMING", to: "CONFIRMED" },
  "confirm-reverted": fail("CONFIRMING", "CONFIRM_TX_FAILED"),
} as const satisfies Record<string, Step>;

/** What can happen to an order. */
export type Trigger = keyof typeof steps;

/** Whether a request for the same user, package and fields has to wait: 422 `there is already an ongoing request`. */
export function isOngoing(status: Status): boolean {
  return status === "INITIATING" || status === "INITIATED" || status === "CONFIRMING";
}

/** Whether a text has the form of a reference key; any other names no order, so that no query is needed. */
export function isReferenceKey(text: string): boolean {
  return /^[0-9a-f]{64}$/.test(text);
}

/** How many results that match nothing an attempt survives; the next one ends it. */
export const mismatchesForgiven = 3;

/** An approved order that is not INITIATED after this long fails. */
export const initiateWithinSeconds = 72 * 3600;

const windowMinSeconds = 5 * 60;
const windowMaxSeconds = 15 * 60;

/** The bounds of an expiration, both inclusive: 5 to 15 minutes ahead (service document, Limits). */
export function expirationRange(now: number): { earliest: number; latest: number } {
  return { earliest: now + windowMinSeconds, latest: now + windowMaxSeconds };
}

export function isExpirationInRange(expiration: number, now: number): boolean {
  const { earliest, latest } = expirationRange(now);
  return Number.isSafeInteger(expiration) && expiration >= earliest && expiration <= latest;
}

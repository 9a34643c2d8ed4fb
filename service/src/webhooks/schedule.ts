// What follows an attempt, and when the next one is made: decisions section 7, Outbox. Pure.

/** How an attempt ended, as the outbound client reports it; `error` is a fault of this service. */
export type Outcome =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly retryAfter: string | null;
      /** The body did not end in time. Only for other statuses than 2xx; a 2xx without its whole body is a `failed`. */
      readonly isLate?: boolean;
    }
  | { readonly kind: "failed"; readonly reason: FailureReason };

type FailureReason = "blocked" | "unreachable" | "timeout" | "too_large" | "error";

/** Outcomes as they are counted and logged. */
export type OutcomeName = "delivered" | "refused" | "redirect" | FailureReason;

type NextStep =
  | { readonly kind: "delivered" }
  | { readonly kind: "again"; readonly atMs: number }
  | { readonly kind: "given_up" };

/** Seconds from the end of an attempt to the next: 13 attempts in 76 hours. */
const pausesSeconds = [
  5, 30, 120, 600, 1800, 3600, 7200, 18_000, 36_000, 50_400, 72_000, 86_400,
] as const;
/** The least pause after an answer 429 or a time-out. */
const calmSeconds = 60;
const retryAfterSecondsMax = 86_400;
/** The last attempt is made at least this long before the purge, so that it can end. */
const purgeMarginSeconds = 60;
/** Pauses are lengthened by up to this share, so that deliveries that failed together are not retried together. */
const jitter = 0.2;

interface Situation {
  /** Attempts made before this one in this run of the schedule. */
  readonly step: number;
  readonly nowMs: number;
  /** When the body is purged, Unix seconds. */
  readonly purgeAt: number;
  /** 0..1, uniform. */
  readonly fraction: number;
}

/** What follows an attempt that ended now. An attempt that would be due after the purge is moved before it. */
export function nextStepOf(
  outcome: Outcome,
  { step, nowMs, purgeAt, fraction }: Situation,
): NextStep {
  if (nameOf(outcome) === "delivered") return { kind: "delivered" };
  const pause = pausesSeconds[step];
  if (pause === undefined) return { kind: "given_up" };
  const stretched = Math.max(pause * (1 + jitter * fraction), isBusy(outcome) ? calmSeconds : 0);
  const asked = outcome.kind === "answered" ? retryAfterSeconds(outcome.retryAfter, nowMs) : 0;
  const dueMs = nowMs + Math.max(stretched, asked) * 1000;
  const lastMs = (purgeAt - purgeMarginSeconds) * 1000;
  const atMs = Math.ceil(Math.min(dueMs, lastMs));
  return atMs <= nowMs ? { kind: "given_up" } : { kind: "again", atMs };
}

/** Any 2xx delivers. A redirect could lead a signed body elsewhere, so it is a failure like any other answer. */
export function nameOf(outcome: Outcome): OutcomeName {
  if (outcome.kind === "failed") return outcome.reason;
  if (outcome.status >= 200 && outcome.status < 300) return "delivered";
  return outcome.status >= 300 && outcome.status < 400 ? "redirect" : "refused";
}

function isBusy(outcome: Outcome): boolean {
  return didHang(outcome) || (outcome.kind === "answered" && outcome.status === 429);
}

/** Whether the receiver used up the whole time-out, whether or not it had begun to answer. */
export function didHang(outcome: Outcome): boolean {
  return outcome.kind === "failed" ? outcome.reason === "timeout" : outcome.isLate === true;
}

/** RFC 9110 section 10.2.3: seconds or a date. 0 for anything else and for the past; at most a day. */
function retryAfterSeconds(value: string | null, nowMs: number): number {
  if (value === null) return 0;
  const seconds = /^\d{1,10}$/.test(value) ? Number(value) : (Date.parse(value) - nowMs) / 1000;
  return seconds > 0 ? Math.min(seconds, retryAfterSecondsMax) : 0;
}

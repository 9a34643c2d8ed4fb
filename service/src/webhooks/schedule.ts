// When an event is tried again (decisions section 7, Outbox). Pure rules.

/** Seconds before each attempt of a round, the first at once: 13 attempts over 76 hours. */
export const delaysSeconds = [
  0,
  5,
  30,
  2 * 60,
  10 * 60,
  30 * 60,
  3_600,
  2 * 3_600,
  5 * 3_600,
  10 * 3_600,
  14 * 3_600,
  20 * 3_600,
  24 * 3_600,
] as const;

const jitterMax = 0.2;
/** After a time-out or 429 the receiver is busy; asking sooner makes it busier. */
const busyWaitSeconds = 60;
const retryAfterMaxSeconds = 86_400;

/** What came of one try. */
export interface Outcome {
  /** HTTP status; null where there was no answer in time. */
  readonly status: number | null;
  readonly isTimeout: boolean;
  /** `Retry-After` as it came. */
  readonly retryAfter?: string;
}

/** Any 2xx whose body ended in time. A redirect is a failure: a signed body goes where it was meant to go. */
export function isSuccess({ status }: Outcome): boolean {
  return status !== null && status >= 200 && status < 300;
}

/**
 * When the next attempt is due, or null after the last.
 *
 * @param given.made attempts of this round so far, this one included
 * @param given.fraction 0..1, for the jitter
 * @param given.before Unix seconds; an attempt would find the body purged from then on
 */
export function nextAttemptAt(
  outcome: Outcome,
  given: { made: number; now: number; fraction: number; before: number | null },
): number | null {
  const delay = delaysSeconds[given.made];
  if (delay === undefined) return null;
  const jittered = Math.ceil(delay * (1 + jitterMax * given.fraction));
  const isBusy = outcome.isTimeout || outcome.status === 429;
  const asked = secondsOf(outcome.retryAfter, given.now) ?? 0;
  const wait = Math.max(
    jittered,
    isBusy ? busyWaitSeconds : 0,
    Math.min(asked, retryAfterMaxSeconds),
  );
  const at = given.now + wait;
  return given.before === null ? at : Math.max(given.now + 1, Math.min(at, given.before - 1));
}

/** RFC 9110 section 10.2.3: seconds, or a date. */
function secondsOf(retryAfter: string | undefined, now: number): number | null {
  if (retryAfter === undefined) return null;
  if (/^\d{1,9}$/.test(retryAfter)) return Number(retryAfter);
  const date = Date.parse(retryAfter);
  return Number.isNaN(date) ? null : Math.max(0, Math.ceil(date / 1000) - now);
}

// When an endpoint goes into quarantine: decisions section 7, Quarantine. Pure.
import type { OutcomeName } from "./schedule.ts";

/** The health of an endpoint. Times are Unix milliseconds at which attempts began. */
export interface Health {
  /** False in quarantine. */
  readonly isActive: boolean;
  /** Reactivated after a quarantine: it gets a slower pace until the first 2xx. */
  readonly isResuming: boolean;
  /** Failed attempts since the last 2xx, and the first of them. */
  readonly failures: number;
  readonly failingSinceMs: number | null;
  /** Those of the failures that the address policy refused, and the first of them. */
  readonly refusals: number;
  readonly refusedSinceMs: number | null;
}

/** One attempt that ended. */
export interface EndedAttempt {
  readonly outcome: OutcomeName;
  readonly status: number | null;
  readonly begunAtMs: number;
}

const goneStatus = 410;
const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
/** Reaching one of them is enough. */
const limits = {
  streak: { failures: 10, spanMs: 72 * hourMs },
  burst: { failures: 100, spanMs: hourMs },
  refused: { failures: 3, spanMs: 10 * minuteMs },
} as const;

/** The health after one more attempt. A fault of this service (`error`) says nothing about the endpoint. */
export function healthAfter(health: Health, { outcome, status, begunAtMs }: EndedAttempt): Health {
  if (outcome === "error") return health;
  if (outcome === "delivered")
    return {
      ...health,
      isResuming: false,
      failures: 0,
      failingSinceMs: null,
      refusals: 0,
      refusedSinceMs: null,
    };
  const failures = health.failures + 1;
  const failingSinceMs = health.failingSinceMs ?? begunAtMs;
  const isBlocked = outcome === "blocked";
  const refusals = health.refusals + (isBlocked ? 1 : 0);
  const refusedSinceMs = health.refusedSinceMs ?? (isBlocked ? begunAtMs : null);
  const failing = { failures, spanMs: begunAtMs - failingSinceMs };
  const refused = { failures: refusals, spanMs: begunAtMs - (refusedSinceMs ?? begunAtMs) };
  const isOut =
    status === goneStatus ||
    reaches(failing, limits.streak) ||
    reaches(failing, limits.burst) ||
    reaches(refused, limits.refused);
  const isActive = health.isActive && !isOut;
  return { ...health, isActive, failures, failingSinceMs, refusals, refusedSinceMs };
}

interface Streak {
  readonly failures: number;
  readonly spanMs: number;
}

function reaches(streak: Streak, limit: Streak): boolean {
  return streak.failures >= limit.failures && streak.spanMs >= limit.spanMs;
}

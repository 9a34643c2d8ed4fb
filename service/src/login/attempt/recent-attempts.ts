import { forgetOldest } from "../../platform/forget-oldest.ts";
import type { Attempt } from "./attempt.ts";

/** About 2 kB each: page, claim and approval of one login usually reach the same process within seconds. */
const attemptsMax = 10_000;

/**
 * Attempts that this process wrote or read a moment ago. They save reads of what does not change and are never
 * authoritative: every change is one guarded statement that fails if the row differs, and then the row is read again.
 */
export interface RecentAttempts {
  get(id: string): Attempt | undefined;
  put(attempt: Attempt): void;
  forget(id: string): void;
}

export function createRecentAttempts(): RecentAttempts {
  const attempts = new Map<string, Attempt>();
  return {
    get: (id) => attempts.get(id),
    put(attempt) {
      attempts.delete(attempt.id);
      attempts.set(attempt.id, attempt);
      forgetOldest(attempts, attemptsMax);
    },
    forget: (id) => attempts.delete(id),
  };
}

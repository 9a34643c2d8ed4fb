/**
 * Times of creation, Unix seconds, between which every login lies that is still open. A statement that looks for open
 * logins names them, because `login` has an index on the time of creation, and none on user or status.
 */
export interface OpenWindow {
  readonly since: number;
  readonly until: number;
}

/** Longer than any login stays open, plus what clocks of processes differ by. */
const openSecondsMax = 3600;

export function openWindowAt(now: number): OpenWindow {
  return { since: now - openSecondsMax, until: now + openSecondsMax };
}

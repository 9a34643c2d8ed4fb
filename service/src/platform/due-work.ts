import { setTimeout as pause } from "node:timers/promises";
import type { NextWake } from "./jobs.ts";

/** Stored work that calls other hosts when it is due; one process does several items at once. */
export interface DueWork<T> {
  /** How many may begin beside those under way; more may be due. */
  limitBeside(underWay: readonly T[]): number;
  /** Takes what is due, for this process alone. @param limit at least 1 */
  lease(limit: number, underWay: readonly T[]): Promise<readonly T[]>;
  carryOut(item: T): Promise<void>;
  /** Called with what {@link carryOut} throws; the others go on. */
  brokeOff(error: unknown): void;
  /** What becomes due while others are under way, without a wake, waits no longer than this. */
  readonly lookAgainMs: number;
}

export interface DueWorkSignals {
  /** Nothing begins any more once it is aborted; what is under way ends. */
  readonly closing?: AbortSignal | undefined;
  /** Tells of what comes while others are under way. */
  readonly nextWake?: NextWake | undefined;
}

/**
 * Does work until none is due or under way. One item that takes long holds up no other.
 *
 * @returns how many were begun
 * @throws what {@link DueWork.lease} throws, after what is under way has ended
 */
export async function doDueWork<T>(
  work: DueWork<T>,
  { closing, nextWake }: DueWorkSignals = {},
): Promise<number> {
  const underWay = new Map<Promise<void>, T>();
  const begin = (item: T): void => {
    const made = work
      .carryOut(item)
      .catch((error: unknown) => work.brokeOff(error))
      .finally(() => underWay.delete(made));
    underWay.set(made, item);
  };
  try {
    for (let begun = 0; ;) {
      const before = [...underWay.values()];
      const woken = nextWake === undefined ? [] : [nextWake()];
      const limit = closing?.aborted === true ? 0 : work.limitBeside(before);
      const due = limit === 0 ? [] : await work.lease(limit, before);
      begun += due.length;
      for (const item of due) begin(item);
      if (due.length === 0 && before.length === 0) return begun;
      // A full lease may have left more behind; and if everything has ended meanwhile, there is nothing to wait for.
      const mayBeginMore = due.length === limit && limit > 0;
      if (mayBeginMore || underWay.size === 0) continue;
      const poll = pause(work.lookAgainMs, undefined, { ref: false });
      await Promise.race([...underWay.keys(), ...woken, poll]);
    }
  } finally {
    await Promise.all(underWay.keys());
  }
}

import type { Clock } from "./clock.ts";

/** Ids of work that this process cannot do for now. Only in memory, since another process may be able to do it. */
export interface Deferred {
  add(id: string): void;
  /** The ids of work that is not to be tried yet. */
  ids(): string[];
}

const deferredSeconds = 60;

/** Opens a list of work that is tried again a minute later. */
export function createDeferred(clock: Clock): Deferred {
  const until = new Map<string, number>();
  return {
    add: (id) => void until.set(id, clock.now() + deferredSeconds),
    ids() {
      const now = clock.now();
      for (const [id, at] of until) if (at <= now) until.delete(id);
      return [...until.keys()];
    },
  };
}

import { createHmac, randomBytes } from "node:crypto";

/** Pages that wait for a change of what they show. */
export interface Watches {
  /** Another number after each change of this name, for another name, and after a restart. */
  versionOf: (name: string) => number;
  wake: (name: string) => void;
  /** Resolves at its next change, after `timeoutMs`, or at once if too many wait. */
  next: (name: string, timeoutMs: number) => Promise<void>;
}

/** How many pages may wait at the same time; any more are answered at once, and ask again after a pause. */
const waitingMax = 1000;

/** The same for one name, so that a person who opens the page a thousand times takes no places from others. */
const waitingOfNameMax = 20;

export function openWatches(): Watches {
  const versions = new Map<string, number>();
  // A count that began at 0 again would tell a page from before a restart that it has missed nothing, and one whose
  // person has been exchanged in another tab that it still shows the right one.
  const key = randomBytes(32);
  const firstOf = (name: string) =>
    createHmac("sha256", key).update(name).digest().readUIntBE(0, 6);
  const versionOf = (name: string) => versions.get(name) ?? firstOf(name);
  const waiting = new Map<string, Set<() => void>>();
  let count = 0;
  return {
    versionOf,
    wake: (name) => {
      versions.set(name, versionOf(name) + 1);
      for (const go of waiting.get(name) ?? []) go();
    },
    next: async (name, timeoutMs) => {
      const own = waiting.get(name) ?? new Set();
      if (count >= waitingMax || own.size >= waitingOfNameMax) return;
      count += 1;
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(name, own.add(resolve));
      const timer = setTimeout(resolve, timeoutMs).unref();
      try {
        await promise;
      } finally {
        clearTimeout(timer);
        own.delete(resolve);
        if (own.size === 0 && waiting.get(name) === own) waiting.delete(name);
        count -= 1;
      }
    },
  };
}

/** Pages that wait for a change of what they show. */
export interface Watches {
  /** How often this one has changed since the shop opened. */
  versionOf: (name: string) => number;
  wake: (name: string) => void;
  /** Resolves at its next change, or after `timeoutMs`. */
  next: (name: string, timeoutMs: number) => Promise<void>;
}

/** Pages that wait at once; more get their answer at once, and ask again. */
const waitingMax = 1000;

export function openWatches(): Watches {
  const versions = new Map<string, number>();
  const waiting = new Map<string, Set<() => void>>();
  let count = 0;
  return {
    versionOf: (name) => versions.get(name) ?? 0,
    wake: (name) => {
      versions.set(name, (versions.get(name) ?? 0) + 1);
      for (const go of waiting.get(name) ?? []) go();
    },
    next: async (name, timeoutMs) => {
      if (count >= waitingMax) return;
      count += 1;
      const { promise, resolve } = Promise.withResolvers<void>();
      const own = waiting.get(name) ?? new Set();
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

import { createHmac, randomBytes } from "node:crypto";

import type { Reply, Visit } from "./web.ts";

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

/** The same for one name, so that a person who opens the page a thousand times leaves places for others. */
const waitingOfNameMax = 20;

/** A page waits this long for a change before it asks again; `verify.js` gives up after 40 seconds. */
const waitMs = 25_000;

/** Answers a page that shows `name` as soon as there is a newer version than the one it shows. */
export async function awaitNews(
  { versionOf, next }: Pick<Watches, "versionOf" | "next">,
  name: string,
  { url }: Visit,
): Promise<Reply> {
  if (url.searchParams.get("version") === String(versionOf(name))) await next(name, waitMs);
  return { status: 204, headers: { "x-version": String(versionOf(name)) } };
}

export function openWatches(): Watches {
  const versions = new Map<string, number>();
  // Each count starts at a random number of its own. If all started at 0, a page from before a restart, or one whose
  // browser has since logged somebody else in, might hold the current number by coincidence and never be redrawn.
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

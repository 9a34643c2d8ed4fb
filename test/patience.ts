import { setTimeout as delay } from "node:timers/promises";

/**
 * After this, waiting for what should happen fails. It is no promise of how soon that is: on a busy machine the same work
 * takes ten times as long, and what waits for twenty servers to start again takes minutes.
 */
export const patienceMs = 400_000;
/** A look is a call of a server with its queries, and many waits are for a job of every few seconds. */
const pauseMs = { least: 25, most: 250, ofWaited: 1 / 4 };

/**
 * Whether work is done within a time. A machine that stalls lengthens one run or two; what is slow by itself is slow each
 * time.
 */
export async function isWithin(limitMs: number, work: () => Promise<unknown>): Promise<boolean> {
  for (let runs = 0; runs < 5; runs += 1) {
    const began = performance.now();
    await work();
    if (performance.now() - began < limitMs) return true;
  }
  return false;
}

/** Looks again and again until there is something: the longer it took so far, the less often. */
export async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const began = performance.now();
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    const waitedMs = performance.now() - began;
    if (waitedMs > patienceMs) throw new Error(`never happened: ${what}`);
    await delay(Math.min(pauseMs.most, Math.max(pauseMs.least, waitedMs * pauseMs.ofWaited)));
  }
}

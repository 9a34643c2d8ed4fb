import { setTimeout as delay } from "node:timers/promises";

/**
 * After this a wait for what ought to happen says what never came. It is no promise of how soon: where neighbours take
 * the processors of a machine, the same work takes ten times as long.
 */
export const patienceMs = 200_000;
const pauseMs = 25;

/** Looks again and again until there is something. */
export async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (performance.now() > deadline) throw new Error(`never happened: ${what}`);
    await delay(pauseMs);
  }
}

import { setTimeout as delay } from "node:timers/promises";

/** Far longer than the transactions of a first start take. */
const withinMs = 20_000;
const pollMs = 25;

/** Looks again and again until there is something. @throws when it takes too long; `what` says what was awaited */
export async function until<T>(what: string, look: () => Promise<T | null>): Promise<T> {
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() > deadline) throw new Error(`it took too long until ${what}`);
    await delay(pollMs);
  }
}

import { setTimeout as delay } from "node:timers/promises";

interface Patience {
  withinMs: number;
  pollMs: number;
}

/**
 * Far longer than the transactions of a first start take on the embedded chain, even on a busy machine: it is a limit
 * for what never happens.
 */
const embedded: Patience = { withinMs: 120_000, pollMs: 25 };
/**
 * On an external chain several transactions follow one another, each final after a dozen blocks, which may take
 * minutes.
 */
const outside: Patience = { withinMs: 3_600_000, pollMs: 1000 };

/**
 * Looks repeatedly until something is on the chain.
 *
 * @throws when it takes longer than that kind of chain needs; `what` says what was awaited
 */
export async function until<T>(
  what: string,
  { isEmbedded }: { isEmbedded: boolean },
  look: () => Promise<T | null>,
): Promise<T> {
  const { withinMs, pollMs } = isEmbedded ? embedded : outside;
  const deadline = Date.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== null) return found;
    if (Date.now() > deadline) throw new Error(`it took too long until ${what}`);
    await delay(pollMs);
  }
}

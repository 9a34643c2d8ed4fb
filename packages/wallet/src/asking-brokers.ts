// Questions to every broker on the wallet's list: one that is away, or refuses, holds nobody else's answer back.
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";

/** What the brokers on the list answer, in its order. */
interface Answers<T> {
  readonly answers: readonly T[];
  /** Why the answers of others are missing, by broker. */
  readonly missing: ReadonlyMap<string, WalletRefusal>;
}

/** Asks every broker. What the wallet itself cannot do with the answer of one counts as that one's refusal. */
export async function askEach<T>(
  ctx: WalletContext,
  ask: (broker: string) => Promise<T>,
): Promise<Answers<T>> {
  const answers: T[] = [];
  const missing = new Map<string, WalletRefusal>();
  for (const broker of await ctx.brokers())
    try {
      answers.push(await ask(broker));
    } catch (error) {
      if (!(error instanceof WalletRefusal)) throw error;
      missing.set(broker, error);
    }
  return { answers, missing };
}

/**
 * As `askEach`, for a list that a person reads, who is told of what is missing in it.
 *
 * @throws {WalletRefusal} of the first broker, where nobody answers
 */
export async function askForList<T>(
  ctx: WalletContext,
  ask: (broker: string) => Promise<T>,
): Promise<Answers<T>> {
  const { answers, missing } = await askEach(ctx, ask);
  const [first] = missing.values();
  if (first !== undefined && answers.length === 0) throw first;
  for (const { message } of missing.values())
    ctx.tell?.(`${message}; what it keeps is not shown here`);
  return { answers, missing };
}

/**
 * The first answer that is one: brokers are asked in turn until then.
 *
 * @param ask answers null where the broker has nothing of it
 * @returns unasked: where nothing was found, why one may have it all the same
 */
export async function askInTurn<T>(
  ctx: WalletContext,
  ask: (broker: string) => Promise<T | null>,
): Promise<{ readonly found: T | null; readonly unasked: WalletRefusal | null }> {
  let unasked: WalletRefusal | null = null;
  for (const broker of await ctx.brokers())
    try {
      const found = await ask(broker);
      if (found !== null) return { found, unasked: null };
    } catch (error) {
      if (!(error instanceof WalletRefusal)) throw error;
      unasked ??= error;
    }
  return { found: null, unasked };
}

// Questions to every broker on the wallet's list: a broker that is away or refuses does not hold back the answers of
// others.
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";

/** What the brokers on the list answer, in its order. */
interface Answers<T> {
  readonly answers: readonly T[];
  /** Why the answers of the other brokers are missing, by broker. */
  readonly missing: ReadonlyMap<string, WalletRefusal>;
}

/** Asks every broker. If the wallet cannot process a broker's answer, that counts as that broker's refusal. */
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
 * As `askEach`, for a list that a person reads; the person is told what is missing from it.
 *
 * @throws {WalletRefusal} that of the first broker, if no broker answers
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
 * The first answer that is not null: brokers are asked in turn until one gives it.
 *
 * @param ask returns null if the broker does not have it
 * @returns unasked: if nothing was found, the refusal of the first broker that could not be asked and may have it
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

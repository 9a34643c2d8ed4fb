// Questions to every broker on the wallet's list: one that is away, or refuses, holds nobody else's answer back.
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";

/** A broker that cannot be reached, or answers with an error. */
export const isAway = (error: unknown): error is WalletRefusal =>
  error instanceof WalletRefusal &&
  (error.code === "unreachable" || error.code === "broker_refused");

/**
 * What every broker answers, in the order of the list. Of those that are away the person is told.
 *
 * @returns away: the brokers whose answers are missing
 * @throws {WalletRefusal} of the first of them, where nobody answers
 */
export async function askEach<T>(
  ctx: WalletContext,
  ask: (broker: string) => Promise<T>,
): Promise<{ readonly answers: readonly T[]; readonly away: readonly string[] }> {
  const answers: T[] = [];
  const refusals = new Map<string, WalletRefusal>();
  for (const broker of await ctx.brokers())
    try {
      answers.push(await ask(broker));
    } catch (error) {
      if (!isAway(error)) throw error;
      refusals.set(broker, error);
    }
  const [first] = refusals.values();
  if (first !== undefined && answers.length === 0) throw first;
  for (const { message } of refusals.values())
    ctx.tell?.(`${message}; what it keeps is not shown here`);
  return { answers, away: [...refusals.keys()] };
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
      if (!isAway(error)) throw error;
      unasked ??= error;
    }
  return { found: null, unasked };
}

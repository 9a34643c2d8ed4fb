import type { Queryable } from "../platform/database/db.ts";
import type { ChainContext } from "./context.ts";
import * as store from "./transaction-store.ts";

/**
 * Queues a transaction in the caller's database transaction: it is sent once that commits. Repeating the same call
 * changes nothing.
 *
 * @returns its id
 * @throws if there is a transaction of this kind and subject with another target or other data
 */
export async function enqueueTransaction(
  ctx: ChainContext,
  tx: Queryable,
  given: store.NewTransaction,
): Promise<string> {
  const id = await store.insertTransaction(tx, given, ctx.clock.now());
  if (id === null) throw new Error(`another transaction ${given.kind} exists for this subject`);
  return id;
}

/** The subject of an attempt. There is only one transaction per subject, so attempts after the first are numbered. */
export function subjectOfAttempt(parts: readonly (string | number)[], failures: number): string {
  return [...parts, ...(failures === 0 ? [] : [failures + 1])].join(":");
}

/** @param number of the attempt, as {@link subjectOfAttempt} appends it */
export function failuresBefore(number = "1"): number {
  return Number(number) - 1;
}

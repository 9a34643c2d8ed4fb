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

import type { Queryable } from "../platform/database/db.ts";
import type { ChainContext } from "./context.ts";
import * as store from "./transaction-store.ts";

/**
 * Queues a transaction in the caller's database transaction: it is sent when, and only when, that commits. The same
 * call again changes nothing.
 *
 * @returns its id
 * @throws when the kind has this subject with another target or other data
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

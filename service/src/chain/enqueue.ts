import type { Address, Hex } from "@svc/protocol";
import type { Queryable } from "../platform/db.ts";
import type { ChainContext } from "./context.ts";
import * as store from "./transaction-store.ts";

/** A call of a contract that has to be mined, once. */
interface NewTransaction {
  /** What it does; also names who is told of its end. */
  readonly kind: string;
  /** What it does it for; a kind has one transaction for a subject, for ever. */
  readonly subjectId: string;
  readonly to: Address;
  readonly data: Hex;
}

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
  given: NewTransaction,
): Promise<string> {
  const id = await store.insertTransaction(tx, given, ctx.clock.now());
  if (id === null) throw new Error(`another transaction ${given.kind} exists for this subject`);
  return id;
}

import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { workInBatches } from "../platform/database/work-in-batches.ts";
import * as store from "./endpoint-store.ts";

/** Deliveries per statement, which then holds its locks for a fifth of a second. */
const batch = 5000;

/**
 * Makes held deliveries of an endpoint due again, in the transaction that makes it active: the oldest at once, so that
 * no new event overtakes them; a job does the rest.
 */
export async function releaseOldest(
  ctx: Pick<Ctx, "clock">,
  tx: Queryable,
  endpointId: string,
): Promise<void> {
  await store.releaseHeld(tx, endpointId, { nowMs: ctx.clock.nowMs(), limit: batch });
  await store.wakeReconciling(tx);
}

/**
 * Holds deliveries that wait for endpoints in quarantine, and releases those still held for active ones. Any number of
 * processes may do so at once: each statement locks the endpoint, as the recording of its attempts does.
 */
export async function reconcileHeld(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  for (const id of await store.listUnreconciled(ctx.db)) {
    await workInBatches(batch, async (limit) => store.holdWaiting(ctx.db, id, limit));
    await workInBatches(batch, async (limit) =>
      store.releaseHeld(ctx.db, id, { nowMs: ctx.clock.nowMs(), limit }),
    );
  }
}

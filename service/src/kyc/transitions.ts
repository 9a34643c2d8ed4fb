import type { Queryable } from "../platform/database/db.ts";
import { enqueueEvents } from "../webhooks/index.ts";
import { statusUpdated } from "./events.ts";
import type { KycContext } from "./kyc-context.ts";
import type { Order } from "./order-row.ts";
import * as store from "./transition-store.ts";

/**
 * Makes the same transition of any number of orders, with history, transfers and events, in the caller's transaction:
 * two statements. An order that is no longer in the status the step begins with is left alone.
 *
 * @returns the orders that moved, as they are now
 */
export async function moveOrders(
  ctx: Pick<KycContext, "clock" | "random" | "seal">,
  tx: Queryable,
  move: store.Move,
): Promise<Order[]> {
  if (move.orders.length === 0) return [];
  const moved = await store.moveRows(tx, move);
  await enqueueEvents(
    ctx,
    tx,
    moved.map((order) => statusUpdated(ctx, order)),
  );
  return moved;
}

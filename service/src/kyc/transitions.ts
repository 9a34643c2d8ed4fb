import type { Queryable } from "../platform/database/db.ts";
import { enqueueEvents, type NewEvent } from "../webhooks/index.ts";
import { statusUpdated } from "./events.ts";
import type { KycContext } from "./kyc-context.ts";
import type { Order } from "./order-row.ts";
import * as store from "./transition-store.ts";

/** The same transition for any number of orders, and a further event for their merchants. */
interface ToldMove extends Omit<store.Move, "following"> {
  /** Makes a second event for each order that moved, after the one of its new status. */
  readonly follow?: (order: Order) => NewEvent;
}

/**
 * Moves any number of orders, with history, transfers and events, in the caller's transaction and two statements. An
 * order that no longer has the step's `from` is left alone.
 *
 * @returns the orders that moved, as they are now
 */
export async function moveOrders(
  ctx: Pick<KycContext, "clock" | "random" | "seal">,
  tx: Queryable,
  { follow, ...move }: ToldMove,
): Promise<Order[]> {
  if (move.orders.length === 0) return [];
  const following = follow === undefined ? 0 : 1;
  const moved = await store.moveRows(tx, { ...move, following });
  const events = moved.flatMap((order) => {
    const updated = statusUpdated(ctx, { ...order, sequence: order.sequence - following });
    return follow === undefined ? [updated] : [updated, follow(order)];
  });
  await enqueueEvents(ctx, tx, events);
  return moved;
}

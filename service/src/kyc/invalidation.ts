import type { InvalidLeaf } from "../credentials/index.ts";
import type { Queryable } from "../platform/db.ts";
import { enqueueEvents } from "../webhooks/index.ts";
import { dataInvalidated } from "./events.ts";
import * as store from "./invalidation-store.ts";
import type { KycContext } from "./kyc-context.ts";
import { lockHandOver } from "./settlement-store.ts";
import { addSequence } from "./transition-store.ts";

/**
 * Tells the merchants who were given these leaves that they no longer hold: one event for each order, in the
 * transaction that ends them. Waits for the hand-overs under way, so that none slips through between its check and
 * its delivery.
 */
export async function announceInvalidated(
  ctx: KycContext,
  tx: Queryable,
  leaves: readonly InvalidLeaf[],
): Promise<void> {
  await lockHandOver(tx);
  const delivered = await store.listDelivered(
    tx,
    leaves.map(({ leaf }) => leaf),
  );
  if (delivered.length === 0) return;
  const orders = await addSequence(
    tx,
    delivered.map(({ orderId }) => orderId),
  );
  const invalid = new Map(delivered.map((each) => [each.orderId, each]));
  const events = orders.flatMap((order) => {
    const found = invalid.get(order.id);
    if (found === undefined) return [];
    // The order may be in a later attempt by now.
    return [dataInvalidated(ctx, { ...order, attempt: found.attempt }, found.fields)];
  });
  await enqueueEvents(ctx, tx, events);
}

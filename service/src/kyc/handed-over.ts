import type { InvalidLeaf } from "../credentials/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import { enqueueEvents } from "../webhooks/index.ts";
import { dataInvalidated } from "./events.ts";
import * as store from "./handed-over-store.ts";
import type { KycContext } from "./kyc-context.ts";
import { lockHandOver } from "./settlement-store.ts";
import { addSequence } from "./transition-store.ts";

/**
 * Announces to the merchants who were given these leaves that they are no longer valid, in the transaction that
 * invalidates them: one event per order. Waits for hand-overs under way, which have checked their leaves already; they
 * would otherwise deliver leaves whose end nobody announces.
 */
export async function announceInvalidated(
  ctx: Pick<KycContext, "clock" | "random" | "seal">,
  tx: Queryable,
  leaves: readonly InvalidLeaf[],
): Promise<void> {
  await lockHandOver(tx);
  const invalidated = await store.listInvalidated(
    tx,
    leaves.map(({ leaf }) => leaf),
  );
  if (invalidated.length === 0) return;
  const orders = await addSequence(
    tx,
    invalidated.map(({ orderId }) => orderId),
  );
  const byOrder = new Map(invalidated.map((each) => [each.orderId, each]));
  const events = orders.flatMap((order) => {
    const found = byOrder.get(order.id);
    if (found === undefined) return [];
    // The order may be in a later attempt by now.
    return [dataInvalidated(ctx, { ...order, attempt: found.attempt }, found.fields)];
  });
  await enqueueEvents(ctx, tx, events);
}

// What merchants were given, after it was given: which leaves they hold, and that one no longer counts.
import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { InvalidLeaf } from "../credentials/index.ts";
import type { Queryable } from "../platform/db.ts";
import { enqueueEvents } from "../webhooks/index.ts";
import { dataInvalidated } from "./events.ts";
import * as store from "./delivery-store.ts";
import type { KycContext } from "./kyc-context.ts";
import { lockHandOver } from "./settlement-store.ts";
import { addSequence } from "./transition-store.ts";

/**
 * Tells the merchants who were given these leaves that they no longer hold: one event for each order, in the
 * transaction that ends them. Waits for the hand-overs under way, so that none slips through between its check and
 * its delivery.
 */
export async function announceInvalidated(
  ctx: Pick<KycContext, "clock" | "random" | "seal">,
  tx: Queryable,
  leaves: readonly InvalidLeaf[],
): Promise<void> {
  await lockHandOver(tx);
  const delivered = await store.listDeliveries(
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

/** The leaves of a user's fields that were handed over to an organization, whether they still count or not. */
export async function listDelivered(
  ctx: Pick<KycContext, "db">,
  organizationId: string,
  given: { user: Address; fields: readonly FieldName[] },
): Promise<readonly Hex32[]> {
  return store.listDeliveredLeaves(ctx.db, organizationId, given);
}

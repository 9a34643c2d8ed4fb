import type { Address } from "@svc/protocol";
import type { InvalidLeaf } from "../credentials/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import { forgetStreams } from "../webhooks/index.ts";
import { announceInvalidated } from "./handed-over.ts";
import * as store from "./user-deletion-store.ts";
import type { KycContext } from "./kyc-context.ts";
import { isOngoing, steps } from "./order.ts";
import { deleteIdentity } from "./synthetic-identity-store.ts";
import { moveOrders } from "./transitions.ts";

/**
 * Forgets a user's orders, in the caller's transaction: a PENDING order is declined, and merchants who were given these
 * leaves are told that they no longer hold. The events about this are still delivered, and deleted soon after;
 * everything else about the orders is deleted at once.
 *
 * @param given.leaves those that this deletion invalidates
 * @returns how many orders were deleted
 * @throws {Error} while an order of the user is being settled, which takes minutes at most
 */
export async function forgetOrders(
  ctx: Pick<KycContext, "clock" | "random" | "seal">,
  tx: Queryable,
  { user, leaves }: { user: Address; leaves: readonly InvalidLeaf[] },
): Promise<number> {
  await announceInvalidated(ctx, tx, leaves);
  const orders = await store.lockOrdersOf(tx, user);
  if (orders.some(({ status }) => isOngoing(status)))
    throw new Error("an order of this user is being settled; try again in a few minutes");
  const pending = orders.filter(({ status }) => status === "PENDING");
  const step = steps.declined;
  await moveOrders(ctx, tx, { orders: pending, step, at: ctx.clock.now() });
  const ids = orders.map(({ id }) => id);
  await forgetStreams(ctx, tx, ids);
  await store.deleteOrders(tx, ids);
  await deleteIdentity(tx, user);
  return orders.length;
}

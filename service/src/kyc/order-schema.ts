import { type Static, Type } from "../platform/http/schema.ts";
import { failureReasons, statuses } from "./order.ts";
import type { ReachedStatus } from "./order-row.ts";

const oneOf = (values: readonly string[]) => Type.String({ enum: [...values] });

/** A status that an order reached, and what belongs to it (service document, KYC order). */
export const orderStatus = Type.Object(
  {
    status: oneOf(statuses),
    createdAt: Type.Integer({
      description: "When the order reached this status, Unix seconds.",
    }),
    initiatedTxHash: Type.Optional(Type.String()),
    confirmTxHash: Type.Optional(Type.String()),
    failureReason: Type.Optional(oneOf(failureReasons)),
  },
  { title: "OrderState" },
);

/** The status as all routes and events show it. */
export function statusOf(order: ReachedStatus): Static<typeof orderStatus> {
  return {
    status: order.status,
    createdAt: order.statusAt,
    ...(order.initiatedTxHash === null ? {} : { initiatedTxHash: order.initiatedTxHash }),
    ...(order.confirmTxHash === null ? {} : { confirmTxHash: order.confirmTxHash }),
    ...(order.failureReason === null ? {} : { failureReason: order.failureReason }),
  };
}

/** The parameter that names an order. Without a pattern, so that a malformed key is answered like an unknown one. */
export const keyMember = { referenceKey: Type.String({ minLength: 1, maxLength: 200 }) };

import { type Static, Type } from "../platform/http/schema.ts";
import { failureReasons, statuses } from "./order.ts";
import type { ReachedStatus } from "./order-row.ts";

const oneOf = (values: readonly string[], description: string) =>
  Type.String({ enum: [...values], description });

/** The names of an order, as answers and events give them. */
export const keyText = Type.String({
  description: "Names the order: 64 hex digits, always the same for an identical request.",
});
export const referenceText = Type.String({
  description: "Your own reference, as you gave it.",
});
export const attemptNumber = Type.Integer({ description: "The attempt of the order, from 1." });

/** When an order ends unless its user answers. */
export const expirationTime = Type.Integer({
  description: "Until when the user may approve, Unix seconds.",
});

/** The hash of the first of the two transactions that anchor an order. */
export const initiatedHash = Type.Optional(
  Type.String({
    description: "Hash of the on-chain initiate transaction, present once it exists.",
  }),
);

/** A status that an order reached, and what belongs to it (service document, KYC order). */
export const orderStatus = Type.Object(
  {
    status: oneOf(
      statuses,
      "`PENDING` until the user answers. `INITIATED` and `CONFIRMED`: that transaction is final on chain. `data.transferred` follows `CONFIRMING`.",
    ),
    createdAt: Type.Integer({
      description: "When the order reached this status, Unix seconds.",
    }),
    initiatedTxHash: initiatedHash,
    confirmTxHash: Type.Optional(
      Type.String({
        description: "Hash of the on-chain confirm transaction, present once it exists.",
      }),
    ),
    failureReason: Type.Optional(
      oneOf(
        failureReasons,
        "Present only when `status` is `FAILED`. `INVALID_CONFIRM_DATA`: signed answers that match nothing; `FIELD_REVOKED`: a field ended after the approval.",
      ),
    ),
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
export const keyMember = {
  referenceKey: Type.String({
    minLength: 1,
    maxLength: 200,
    description: "Names the order, as answers and events give it.",
  }),
};

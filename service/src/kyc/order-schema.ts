import { Type } from "../platform/http/schema.ts";
import { failureReasons, statuses } from "./order.ts";

const oneOf = (values: readonly string[]) => Type.String({ enum: [...values] });

/** Status and what belongs to it (service document, KYC order). */
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

/** The member of a call that names an order. Its form is not said: what is no key names no order. */
export const keyMember = { referenceKey: Type.String({ minLength: 1, maxLength: 200 }) };

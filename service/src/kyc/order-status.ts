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
  { title: "OrderStatus" },
);

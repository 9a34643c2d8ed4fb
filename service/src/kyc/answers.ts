import { Type } from "../platform/http/schema.ts";
import { failureReasons, statuses } from "./order.ts";

/** What any call with an API key may be refused for. */
export const keyReasons = ["apikey_missing", "apikey_invalid", "rate_limited"] as const;

const oneOf = (values: readonly string[]) => Type.String({ enum: [...values] });

/** Status and what belongs to it (service document, KYC order). */
export const orderStatus = Type.Object({
  status: oneOf(statuses),
  createdAt: Type.Integer({
    description: "When the order reached this status, Unix seconds.",
  }),
  initiatedTxHash: Type.Optional(Type.String()),
  confirmTxHash: Type.Optional(Type.String()),
  failureReason: Type.Optional(oneOf(failureReasons)),
});

/** The envelope of a KYC success (service document, Response envelopes). */
export function envelope<Data extends ReturnType<typeof Type.Object>>(
  data: Data,
  description: string,
) {
  return Type.Object(
    { data, message: Type.String(), success: Type.Literal(true) },
    { description },
  );
}

export function answerOf<Data>(data: Data, message: string) {
  return { data, message, success: true as const };
}

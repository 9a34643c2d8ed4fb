import { Type } from "./schema.ts";

/** The body of a KYC success (service document, Response envelopes). */
export function envelopeBody<Data extends ReturnType<typeof Type.Object>>(
  data: Data,
  description: string,
) {
  return Type.Object(
    { data, message: Type.String(), success: Type.Literal(true) },
    { description },
  );
}

/** A KYC success, as {@link envelopeBody} describes it. */
export function envelope<Data>(data: Data, message: string) {
  return { data, message, success: true as const };
}

import { Type } from "./schema.ts";

/** The body of a KYC success (service document, Response envelopes). */
export function envelopeBody<Data extends ReturnType<typeof Type.Object>>(
  data: Data,
  description: string,
) {
  return Type.Object(
    {
      data,
      message: Type.String({
        description: "A sentence for people, the same for every success of the route.",
      }),
      success: Type.Literal(true, {
        description: "Always true, which tells a success from a refusal.",
      }),
    },
    { description },
  );
}

/** A KYC success, as {@link envelopeBody} describes it. */
export function envelope<Data>(data: Data, message: string) {
  return { data, message, success: true as const };
}

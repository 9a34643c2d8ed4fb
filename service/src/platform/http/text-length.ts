import type { Ajv } from "@fastify/ajv-compiler";
import { lengthOf } from "@svc/protocol";

/**
 * A plugin of Ajv, which counts the characters of every text that has a `maxLength`. A text has at most as many
 * characters as UTF-16 units, whose number is known; so characters are counted only if that does not decide the matter.
 */
export function countWhereNeeded(ajv: Ajv): Ajv {
  return ajv.removeKeyword("maxLength").addKeyword({
    keyword: "maxLength",
    type: "string",
    schemaType: "number",
    compile: (max: number) => (text: string) => text.length <= max || lengthOf(text) <= max,
    error: {
      message: ({ schema }) => `must NOT have more than ${String(schema)} characters`,
    },
  });
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { Type as TypeBox } from "typebox";
import { Type } from "./schema.ts";

test("a schema is what TypeBox builds from the same words", () => {
  assert.equal(JSON.stringify(everything(Type)), JSON.stringify(everything(TypeBox)));
});

/** Every builder, with and without what it can be given. */
function everything({ Object: object, ...type }: Pick<typeof TypeBox, keyof typeof Type>) {
  const text = type.String({ pattern: "^[a-z]+$", maxLength: 9 });
  return [
    object({}),
    object({ a: type.Optional(text) }),
    object(
      {
        a: type.Optional(text),
        b: type.Integer({ minimum: 1 }),
        c: type.Optional(object({ d: text })),
      },
      { description: "Members.", additionalProperties: false },
    ),
    type.Any({ description: "Whatever." }),
    type.Array(type.Boolean(), { minItems: 1 }),
    type.Intersect([object({ a: text }), object({ b: type.Optional(text) })], {
      description: "Both.",
    }),
    type.Record(type.String(), type.Unknown(), { description: "By name." }),
    type.Record(text, type.Number()),
    type.Union([type.Literal("A"), type.Literal(1), type.Literal(true), type.Null()]),
    type.Union([type.String()], { description: "One of one." }),
    type.Optional(type.Unknown({ description: "Taken." })),
  ];
}

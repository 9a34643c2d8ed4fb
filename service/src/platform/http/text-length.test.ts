import assert from "node:assert/strict";
import { test } from "node:test";
import buildAjvCompiler from "@fastify/ajv-compiler";
import { Type } from "./schema.ts";
import { countWhereNeeded } from "./text-length.ts";

/** What is found wrong with a text by Fastify's validator, with and without the plugin. */
function bothFindings(text: string): readonly unknown[] {
  const schema = Type.Object({ name: Type.String({ maxLength: 3 }) });
  return [[], [countWhereNeeded]].map((plugins) => {
    const compile = buildAjvCompiler()({}, { customOptions: {}, plugins });
    const validate = compile({ schema, method: "POST", url: "/", httpPart: "body" });
    void validate({ name: text });
    return (validate.errors ?? []).map(({ instancePath, keyword, message }) => ({
      instancePath,
      keyword,
      message,
    }));
  });
}

void test("a text may have as many characters as Ajv would count, and is refused in the same words", () => {
  const texts = [
    "",
    "abc",
    "abcd",
    "😀😀😀",
    "😀😀😀😀",
    "a😀b",
    "\ud83dab",
    "\ud83d\ud83d\ud83d\ud83d",
    "é".repeat(4),
  ];
  for (const text of texts) {
    const [without, withPlugin] = bothFindings(text);
    assert.deepEqual(withPlugin, without, JSON.stringify(text));
  }
  assert.deepEqual(bothFindings("😀😀😀")[1], []);
  assert.deepEqual(bothFindings("😀😀😀😀")[1], [
    {
      instancePath: "/name",
      keyword: "maxLength",
      message: "must NOT have more than 3 characters",
    },
  ]);
});

// The service takes its schemas at their word: that they are JSON Schema is shown here once, not at each start.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isRecord } from "@svc/protocol";
import { lazySchemas } from "../../service/src/platform/http/lazy-schemas.ts";
import { openWorld } from "../world.ts";

/** @yields what requests are validated by: every `schema` of the document's paths but those of answers */
function* listSchemas(part: unknown): Generator {
  if (Array.isArray(part)) for (const each of part) yield* listSchemas(each);
  if (!isRecord(part)) return;
  for (const [name, each] of Object.entries(part)) {
    if (name === "schema") yield each;
    else if (name !== "responses") yield* listSchemas(each);
  }
}

const compile = lazySchemas.buildValidator({}, { customOptions: {} });

/** As unused definitions, schemas are validated but not compiled. @throws {Error} that names an invalid one */
function checkSchemas(schemas: readonly unknown[]): void {
  const schema = { definitions: Object.fromEntries(schemas.entries()) };
  void compile({ schema, method: "POST", url: "/", httpPart: "body" })(null);
}

test("every schema of a request is one of JSON Schema", async () => {
  await using world = await openWorld();
  const document = (await (await fetch(`${world.baseUrl}/openapi.json`)).json()) as {
    paths: unknown;
  };
  const schemas = [...listSchemas(document.paths)];
  assert.ok(schemas.length > 200, `${schemas.length} schemas`);
  checkSchemas(schemas);
  const wrong = [...schemas, { type: "string", description: 1 }];
  assert.throws(() => checkSchemas(wrong), /definitions\/\d+\/description must be string/);
});

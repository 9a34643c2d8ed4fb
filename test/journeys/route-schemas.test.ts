// The service takes its schemas at their word: that they are JSON Schema, and that generators can write clients from
// them, is shown here once, not at each start.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { isRecord } from "@svc/protocol";
import { lazySchemas } from "../../service/src/platform/http/lazy-schemas.ts";
import { openWorld, type World } from "../world.ts";

/** @yields what requests are validated by: every `schema` of the document's paths but those of answers */
function* listSchemas(part: unknown): Generator {
  if (Array.isArray(part)) for (const each of part) yield* listSchemas(each);
  if (!isRecord(part)) return;
  for (const [name, each] of Object.entries(part)) {
    if (name === "schema") yield each;
    else if (name !== "responses") yield* listSchemas(each);
  }
}

/** @yields each schema of these types, also where it is a part of another */
function* listOfTypes(types: readonly string[], part: unknown): Generator<Type> {
  if (Array.isArray(part)) for (const each of part) yield* listOfTypes(types, each);
  if (!isRecord(part)) return;
  if (types.some((type) => type === part["type"])) yield part;
  for (const each of Object.values(part)) yield* listOfTypes(types, each);
}

function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|_)([a-z])/g, (_all, first: string) => first.toUpperCase());
}

const compile = lazySchemas.buildValidator({}, { customOptions: {} });

/** As unused definitions, schemas are validated but not compiled. @throws {Error} that names an invalid one */
function checkSchemas(schemas: readonly unknown[]): void {
  const schema = { definitions: Object.fromEntries(schemas.entries()) };
  void compile({ schema, method: "POST", url: "/", httpPart: "body" })(null);
}

interface Type {
  readonly type?: string;
  readonly format?: string;
  readonly maximum?: number;
}

interface Document {
  readonly paths: unknown;
  readonly webhooks: unknown;
  readonly components: { readonly schemas: Readonly<Record<string, { properties?: object }>> };
}

let world: World;
let document: Document;

before(async () => {
  world = await openWorld();
  document = (await (await fetch(`${world.baseUrl}/openapi.json`)).json()) as Document;
});
after(async () => world[Symbol.asyncDispose]());

test("every schema of a request is one of JSON Schema", () => {
  const schemas = [...listSchemas(document.paths)];
  assert.ok(schemas.length > 200, `${schemas.length} schemas`);
  checkSchemas(schemas);
  const wrong = [...schemas, { type: "string", description: 1 }];
  assert.throws(() => checkSchemas(wrong), /definitions\/\d+\/description must be string/);
});

test("no boolean of the document is an enum, which generators would make a type of texts of", () => {
  const booleans = [...listOfTypes(["boolean"], document)];
  assert.ok(booleans.length > 20, `${booleans.length} booleans`);
  for (const boolean of booleans)
    assert.deepEqual(Object.keys(boolean).toSorted(), ["description", "type"]);
});

test("every number of the document says that it takes 64 bits, unless its bounds take less", () => {
  const numbers = [...listOfTypes(["integer", "number"], document)];
  assert.ok(numbers.length > 100, `${numbers.length} numbers`);
  const narrow = numbers.filter(({ format }) => format !== "int64" && format !== "double");
  assert.ok(narrow.length > 10, `${narrow.length} numbers with bounds`);
  for (const { type, maximum = Infinity } of narrow)
    assert.ok(type === "integer" && maximum < 2 ** 31, `${type} up to ${maximum}`);
});

test("no type has the name that generators give to a constructor, or to the type of a member", () => {
  const { schemas } = document.components;
  const given = Object.entries(schemas).flatMap(([type, { properties = {} }]) =>
    Object.keys(properties)
      .map((member) => type + pascalCase(member))
      .concat(`New${type}`),
  );
  assert.ok(given.includes("NewWebhookEndpoint"));
  assert.ok(given.includes("WebhookEndpointSecretVersion"));
  assert.deepEqual(
    given.filter((name) => name in schemas),
    [],
  );
});

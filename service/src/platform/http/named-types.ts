import { isDeepStrictEqual } from "node:util";
import { isRecord } from "@svc/protocol";

type Json = Readonly<Record<string, unknown>>;

/**
 * Rewrites an OpenAPI document so that each schema with a `title` stands once below `components.schemas`, and is
 * referred to where it was: generators of clients make one type of it, with that name. The sentence that says what an
 * answer means stays with the answer.
 *
 * @throws if two schemas with the same title differ
 */
export function nameTypes(document: Json): Json {
  const types = new Map<string, unknown>();
  const [paths, webhooks] = [document["paths"], document["webhooks"]].map((part) =>
    rewrite(part, types),
  );
  const components = isRecord(document["components"]) ? document["components"] : {};
  const schemas = Object.fromEntries(
    [...types].toSorted(([one], [other]) => (one < other ? -1 : 1)),
  );
  return { ...document, components: { ...components, schemas }, paths, webhooks };
}

function rewrite(value: unknown, types: Map<string, unknown>): unknown {
  if (Array.isArray(value)) return value.map((each) => rewrite(each, types));
  if (!isRecord(value)) return value;
  const members = Object.entries(value).map(([name, each]) => [name, rewrite(each, types)]);
  const rewritten = Object.fromEntries(members) as Json;
  return typeof rewritten["title"] === "string" && typeof rewritten["type"] === "string"
    ? refer(rewritten["title"], rewritten, types)
    : rewritten;
}

function refer(title: string, schema: Json, types: Map<string, unknown>): Json {
  const { title: _title, description: _description, ...type } = schema;
  const known = types.get(title) ?? type;
  if (!isDeepStrictEqual(known, type)) throw new Error(`two types are called ${title}`);
  types.set(title, known);
  return { $ref: `#/components/schemas/${title}` };
}

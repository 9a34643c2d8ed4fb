import { numbersOfPattern } from "./text-form.ts";

/**
 * Rewrites what generators of clients would read differently:
 * - a choice between fixed texts becomes one type, since they make a type of each member of an `anyOf`;
 * - a text in an address that spells a number becomes a number;
 * - a number says how much it holds, since in Java, Go, Rust and C# an integer ends in 2038, and francs are rounded;
 * - a value that may be given once or several times becomes a list, which they write as we read it;
 * - a discriminator is dropped, since OpenAPI knows it only between named types;
 * - a boolean that is always the same is any boolean, since in Java, Rust, C# and Swift they make an enum of texts of it;
 * - a body says whether it may be left out, since `@fastify/swagger` calls each one required.
 */
export function asGeneratorsReadIt(name: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null) return value;
  if (name === "discriminator") return undefined;
  if ("type" in value && value.type === "boolean") return { ...value, enum: undefined };
  if ("type" in value && (value.type === "integer" || value.type === "number"))
    return asWideNumber(value);
  if ("pattern" in value) return asNumber(value);
  if (name === "requestBody") return asBody(value as RequestBody);
  if (name === "application/x-www-form-urlencoded") return asForm(value as Form);
  if ("in" in value && "schema" in value) return { ...value, schema: asList(value.schema) };
  if (!("anyOf" in value)) return value;
  const { anyOf, ...rest } = value;
  const texts = (Array.isArray(anyOf) ? anyOf : []).map(textOf);
  return texts.includes(undefined) ? value : { type: "string", enum: texts, ...rest };
}

interface RequestBody {
  readonly content: Readonly<Record<string, { readonly schema: BodySchema }>>;
}

interface BodySchema {
  readonly type?: string;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean;
  readonly anyOf?: readonly BodySchema[];
}

function asBody({ content }: RequestBody): object {
  const media = Object.entries(content);
  if (!media.every(([type, { schema }]) => mayBeAbsent(type, schema)))
    return { required: true, content };
  const told = media.map(([type, { schema }]) => [type, { schema: schema.anyOf?.[0] ?? schema }]);
  return { content: Object.fromEntries(told) as object };
}

/**
 * As `allowMissingBodies` of http.ts decides: JSON may be absent if no member is required, unless the route takes any
 * members; a form, if its schema has nothing as the alternative.
 */
function mayBeAbsent(type: string, schema: BodySchema): boolean {
  if (schema.anyOf !== undefined) return schema.anyOf[1]?.type === "null";
  const isAnything = schema.type !== "object" || schema.additionalProperties === true;
  return type === "application/json" && !isAnything && schema.required === undefined;
}

interface Form {
  readonly schema: { readonly properties?: Readonly<Record<string, unknown>> };
}

function asForm({ schema }: Form): object {
  const members = Object.entries(schema.properties ?? {});
  const properties = Object.fromEntries(members.map(([name, member]) => [name, asList(member)]));
  return { schema: { ...schema, properties } };
}

/** The list of a choice between one value and a list of such values: in Go nobody can fill that choice. */
function asList(schema: unknown): unknown {
  const { anyOf, ...rest } = schema as { anyOf?: readonly Listed[] };
  const [one, list, ...others] = anyOf ?? [];
  const isEither =
    list?.items?.type !== undefined && list.items.type === one?.type && others.length === 0;
  return isEither ? { ...list, ...rest } : schema;
}

interface Listed {
  readonly type?: string;
  readonly items?: { readonly type?: string };
}

function asNumber(schema: { pattern: unknown }): object {
  const { pattern, ...rest } = schema;
  const bounds = numbersOfPattern(pattern);
  return bounds === undefined ? schema : { ...rest, type: "integer", ...bounds };
}

const int32Max = 2 ** 31 - 1;

/** Without a format, generators take 32 bits for an integer and in Go for any other number, too. */
function asWideNumber(schema: { type?: unknown; maximum?: number }): object {
  if (schema.type === "number") return { ...schema, format: "double" };
  const { maximum = Infinity } = schema;
  return maximum <= int32Max ? schema : { ...schema, format: "int64" };
}

/** The only text that a schema allows. */
function textOf(schema: { type?: unknown; enum?: readonly unknown[] }): unknown {
  return schema.type === "string" && schema.enum?.length === 1 ? schema.enum[0] : undefined;
}

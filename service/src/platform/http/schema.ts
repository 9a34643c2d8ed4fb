import type { TSchema, Type as TypeBox } from "@fastify/type-provider-typebox";

export type { Static, TObject, TSchema } from "@fastify/type-provider-typebox";

interface Schema {
  readonly [keyword: string]: unknown;
  /** Only for {@link Type}.Object: a symbol is not a keyword, and is left out of JSON. */
  readonly [isOptional]?: true;
}

const isOptional = Symbol("optional");

const ofType =
  (type: string) =>
  (options: object = {}): Schema => ({ type, ...options });

function objectOf(properties: Readonly<Record<string, Schema>>, options: object = {}): Schema {
  const required = Object.keys(properties).filter(
    (name) => properties[name]?.[isOptional] !== true,
  );
  return { type: "object", ...(required.length === 0 ? {} : { required }), properties, ...options };
}

const builders = {
  Any: (options: object = {}): Schema => ({ ...options }),
  Array: (items: Schema, options: object = {}): Schema => ({ type: "array", items, ...options }),
  Boolean: ofType("boolean"),
  Integer: ofType("integer"),
  Intersect: (allOf: readonly Schema[], options: object = {}): Schema => ({ allOf, ...options }),
  Literal: (value: string | number | boolean, options: object = {}): Schema => ({
    type: typeof value,
    const: value,
    ...options,
  }),
  Null: ofType("null"),
  Number: ofType("number"),
  Object: objectOf,
  Optional: (schema: Schema): Schema => ({ ...schema, [isOptional]: true }),
  Record: (key: { readonly pattern?: string }, value: Schema, options: object = {}): Schema => ({
    type: "object",
    patternProperties: { [key.pattern ?? "^.*$"]: value },
    ...options,
  }),
  String: ofType("string"),
  Union: (anyOf: readonly Schema[], options: object = {}): Schema => ({ anyOf, ...options }),
  Unknown: (options: object = {}): Schema => ({ ...options }),
};

/**
 * TypeBox's builders of JSON Schemas, as far as routes need them, with TypeBox's types. The library itself is 680 modules,
 * which would take every process a fifth of its start and 20 MiB; a test compares what both build.
 */
// The types are the library's: they say which type a schema describes, which the value does not.
export const Type = builders as unknown as Pick<typeof TypeBox, keyof typeof builders>;

/** The body of a route that needs none: it may be absent, and has no members. */
export const NoMembers = Type.Optional(Type.Object({}, { additionalProperties: false }));

/** How an answer writes 32 bytes, such as a hash. */
export const Bytes32 = Type.String({ description: "0x and 64 hex digits." });

/** The path parameters of a route about one thing. */
export const IdParams = Type.Object({
  id: Type.String({
    description: "The id of what the path is about, as creations, lists and events give it.",
  }),
});

/**
 * For a union of objects that differ by a fixed word in one member: validates a body by the object that its word names,
 * so that a refusal is about that object. Needs Ajv's option `discriminator`.
 */
export function chosenBy<Union extends TSchema>(member: string, union: Union): Union {
  const { anyOf: oneOf, ...options } = union as unknown as Choice;
  const words = builders.Union(
    oneOf.map(({ properties }) => properties[member] ?? {}),
    { description: "Decides which other members the body has." },
  );
  const choice = objectOf(
    { [member]: words },
    { ...options, discriminator: { propertyName: member }, oneOf },
  );
  // The same bodies as those of the union.
  return choice as unknown as Union;
}

interface Choice {
  readonly anyOf: readonly { readonly properties: Readonly<Record<string, Schema>> }[];
}

/** How an answer names a field. */
export const FieldText = Type.String({ description: "The name of the field in `fields.json`." });

/** How an answer writes the identity of a user. */
export const UserText = Type.String({
  description: "The user identity: 0x and 40 hex digits in lower case.",
});

/** How an answer writes the number of a chain. */
export const ChainNumber = Type.Integer({ description: "The chain by its EIP-155 number." });

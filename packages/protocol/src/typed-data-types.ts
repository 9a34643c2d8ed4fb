import { isRecord } from "./encoding.ts";

/** One member of an EIP-712 struct type. */
export interface TypedDataField {
  readonly name: string;
  readonly type: string;
}

/** EIP-712 struct types by their names. `EIP712Domain` may be left out. */
export type TypedDataTypes = Readonly<Record<string, readonly TypedDataField[]>>;

/** Thrown for a document that has no EIP-712 hash. */
export class TypedDataFault extends Error {
  override name = "TypedDataFault";
  /** The path of the faulted member: `types.Mail[0].type`, `domain.chainId`, `message.to[1].wallet`. */
  readonly member: string;

  constructor(member: string, reason: string) {
    super(`${member} ${reason}`);
    this.member = member;
  }
}

export const domainName = "EIP712Domain";

/** Checked types: every member refers to a type that exists. */
export type Structs = ReadonlyMap<string, readonly TypedDataField[]>;

export type Kind =
  | { kind: "array"; element: string; length: number | null }
  | { kind: "struct" }
  | { kind: "string" }
  | { kind: "bytes" }
  | { kind: "fixed-bytes"; size: number }
  | { kind: "address" }
  | { kind: "bool" }
  | { kind: "integer"; bits: number; signed: boolean };

const structsMax = 100;
const fieldsMax = 200;
const nameMax = 100;
const arrayDimensionsMax = 8;

// Solidity identifiers. Anything looser could spell several members, or another type, inside one name.
const identifier = /^[A-Za-z_$][A-Za-z0-9_$]*$/;

/** Checks all of `types`, including those that the primary type never reaches. @throws {TypedDataFault} */
export function compileTypes(types: unknown): Structs {
  if (!isRecord(types)) throw new TypedDataFault("types", "is not an object");
  const entries = Object.entries(types);
  if (entries.length > structsMax) {
    throw new TypedDataFault("types", `holds more than ${structsMax} types`);
  }
  const structs = new Map<string, readonly TypedDataField[]>();
  for (const [name, fields] of entries) {
    const at = `types.${name}`;
    if (!isName(name) || elementaryKind(name) !== null || looksElementary(name)) {
      throw new TypedDataFault(at, "is not a name for a type");
    }
    structs.set(name, fieldsOf(fields, at));
  }
  for (const [name, fields] of structs) {
    for (const [index, field] of fields.entries()) {
      if (kindOf(field.type, structs) !== null && rootKind(field.type, structs) !== null) continue;
      throw new TypedDataFault(`types.${name}[${index}].type`, `is the unknown type ${field.type}`);
    }
  }
  return structs;
}

function fieldsOf(fields: unknown, at: string): readonly TypedDataField[] {
  if (!Array.isArray(fields)) throw new TypedDataFault(at, "is not a list of members");
  if (fields.length > fieldsMax) throw new TypedDataFault(at, `has more than ${fieldsMax} members`);
  const names = new Set<string>();
  return fields.map((field: unknown, index) => {
    const place = `${at}[${index}]`;
    if (!isRecord(field)) throw new TypedDataFault(place, "is not a member");
    const { name, type } = field;
    if (typeof name !== "string" || !isName(name)) {
      throw new TypedDataFault(`${place}.name`, "is not a name for a member");
    }
    if (names.has(name)) throw new TypedDataFault(`${place}.name`, "appears more than once");
    names.add(name);
    if (typeof type !== "string" || type.length > nameMax * 2) {
      throw new TypedDataFault(`${place}.type`, "is not a type");
    }
    return { name, type };
  });
}

const isName = (text: string): boolean => text.length <= nameMax && identifier.test(text);

/** Names that Solidity keeps for itself: a struct of that name would be read as something else elsewhere. */
const looksElementary = (name: string): boolean =>
  /^(?:u?int|bytes|u?fixed)[0-9x]*$/.test(name) || name === "function";

/** What a type is, one level deep; null if it is not a type. */
export function kindOf(type: string, structs: Structs): Kind | null {
  const array = /^(.*)\[([1-9][0-9]{0,4})?\]$/s.exec(type);
  if (array !== null) {
    const [, element = "", length] = array;
    return { kind: "array", element, length: length === undefined ? null : Number(length) };
  }
  return structs.has(type) ? { kind: "struct" } : elementaryKind(type);
}

/** The innermost element type of an array; null if the type is not one or has too many dimensions. */
function rootKind(type: string, structs: Structs): Kind | null {
  let root = type;
  for (let dimensions = 0; dimensions <= arrayDimensionsMax; dimensions += 1) {
    const kind = kindOf(root, structs);
    if (kind?.kind !== "array") return kind;
    root = kind.element;
  }
  return null;
}

function elementaryKind(type: string): Kind | null {
  if (type === "string" || type === "bytes" || type === "address" || type === "bool") {
    return { kind: type };
  }
  // EIP-712 has no aliases: `uint` and `int` without a size are not types.
  const [, base, digits] = /^(uint|int|bytes)([1-9][0-9]{0,2})$/.exec(type) ?? [];
  const size = Number(digits);
  if (base === "bytes") return size <= 32 ? { kind: "fixed-bytes", size } : null;
  if (base === undefined || size % 8 !== 0 || size > 256) return null;
  return { kind: "integer", bits: size, signed: base === "int" };
}

/** The struct types that a type reaches, itself first, then by name: the order of `encodeType`. */
export function reachableTypes(structs: Structs, primaryType: string): readonly string[] {
  if (!structs.has(primaryType)) throw new TypedDataFault("primaryType", "is not one of the types");
  const reached = new Set([primaryType]);
  // Iterating over a set also visits what is added meanwhile.
  for (const name of reached) {
    for (const field of structs.get(name) ?? []) {
      const [root = ""] = field.type.split("[", 1);
      if (structs.has(root)) reached.add(root);
    }
  }
  reached.delete(primaryType);
  return [primaryType, ...[...reached].toSorted()];
}

export function encodeTypeOf(structs: Structs, primaryType: string): string {
  return reachableTypes(structs, primaryType)
    .map((name) => {
      const fields = structs.get(name) ?? [];
      return `${name}(${fields.map((field) => `${field.type} ${field.name}`).join(",")})`;
    })
    .join("");
}

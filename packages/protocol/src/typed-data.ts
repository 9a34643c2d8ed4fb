import { keccak256 } from "./keccak.ts";

import { parseAddress } from "./address.ts";
import { bytesOfHex, bytesOfText, hexOfBytes, isRecord, jsonDepthMax } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import {
  TypedDataFault,
  compileTypes,
  domainName,
  encodeTypeOf,
  kindOf,
} from "./typed-data-types.ts";
import type { Structs, TypedDataField, TypedDataTypes } from "./typed-data-types.ts";

export { TypedDataFault } from "./typed-data-types.ts";
export type { TypedDataField, TypedDataTypes } from "./typed-data-types.ts";

/** An EIP-712 document as wallets receive it. Nothing in it is trusted until it was hashed once. */
export interface TypedDataDocument {
  domain: Readonly<Record<string, unknown>>;
  types: TypedDataTypes;
  primaryType: string;
  message: Readonly<Record<string, unknown>>;
}

/** A document holds at most this many values, so that hashing it is bounded work. */
const valuesMax = 65_536;

/**
 * The EIP-712 digest of a document: what is signed.
 *
 * Strict, because a person decides by what is shown: every member must have a type and every typed member a value;
 * integers are safe numbers, bigints, decimal or `0x` texts within their bounds; addresses of mixed case carry their
 * checksum. If `types` leaves out `EIP712Domain`, it is derived from the members that the domain has. If `EIP712Domain`
 * is the primary type, the hash covers only the domain, so the message must be empty.
 *
 * @throws {TypedDataFault} naming the member
 * @see https://eips.ethereum.org/EIPS/eip-712
 */
export function hashTypedData(document: TypedDataDocument): Hex32 {
  return hexOfBytes(typedDataDigest(document));
}

/** The same as 32 bytes, as `signDigest` and `recoverAddress` take them. */
export function typedDataDigest(document: TypedDataDocument): Uint8Array {
  const hashing = beginHashing(typesWithDomain(document.domain, document.types));
  const { primaryType } = document;
  if (typeof primaryType !== "string" || !hashing.structs.has(primaryType)) {
    throw new TypedDataFault("primaryType", "is not one of the types");
  }
  const separator = hashStruct(hashing, domainName, { value: document.domain, at: "domain" });
  const parts = [Uint8Array.of(0x19, 0x01), separator];
  if (primaryType === domainName) {
    requireEmpty(document.message);
  } else {
    parts.push(hashStruct(hashing, primaryType, { value: document.message, at: "message" }));
  }
  return keccak256(concat(parts));
}

/** A message that no hash covers could be replaced after signing, so it must be empty. */
function requireEmpty(message: unknown): void {
  if (!isRecord(message)) throw new TypedDataFault("message", "is not an object");
  const stranger = Object.keys(message).find((name) => message[name] !== undefined);
  if (stranger !== undefined)
    throw new TypedDataFault(`message.${stranger}`, "is not covered by the hash of a bare domain");
}

/** The text whose hash names a type: the type, then every type it refers to, in order of their names. */
export function encodeType(types: TypedDataTypes, primaryType: string): string {
  return encodeTypeOf(compileTypes(types), primaryType);
}

/** keccak256 of `encodeType`. @throws {TypedDataFault} */
export function typeHash(types: TypedDataTypes, primaryType: string): Hex32 {
  return hexOfBytes(keccak256(bytesOfText(encodeType(types, primaryType))));
}

/**
 * The hash of one struct without any domain, as it is contained in another hash.
 *
 * @throws {TypedDataFault} naming the member
 */
export function structHash(
  types: TypedDataTypes,
  primaryType: string,
  message: Readonly<Record<string, unknown>>,
): Hex32 {
  return hexOfBytes(
    hashStruct(beginHashing(types), primaryType, { value: message, at: "message" }),
  );
}

/** The hash of a domain, by the `EIP712Domain` of `types` or by the one that its members imply. @throws {TypedDataFault} */
export function domainSeparator(
  domain: Readonly<Record<string, unknown>>,
  types: TypedDataTypes = {},
): Hex32 {
  const hashing = beginHashing(typesWithDomain(domain, types));
  return hexOfBytes(hashStruct(hashing, domainName, { value: domain, at: "domain" }));
}

const domainFields: readonly TypedDataField[] = [
  { name: "name", type: "string" },
  { name: "version", type: "string" },
  { name: "chainId", type: "uint256" },
  { name: "verifyingContract", type: "address" },
  { name: "salt", type: "bytes32" },
];

function typesWithDomain(domain: unknown, types: TypedDataTypes): TypedDataTypes {
  if (!isRecord(types)) throw new TypedDataFault("types", "is not an object");
  if (!isRecord(domain)) throw new TypedDataFault("domain", "is not an object");
  if (Object.hasOwn(types, domainName)) return types;
  const fields = domainFields.filter(({ name }) => memberOf(domain, name) !== undefined);
  return { ...types, [domainName]: fields };
}

/** The state of hashing one document: its types, their hashes so far, and how many values may still come. */
interface Hashing {
  structs: Structs;
  typeHashes: Map<string, Uint8Array>;
  valuesLeft: number;
}

/** A value and the path that leads to it, for faults. */
interface Place {
  value: unknown;
  at: string;
  depth?: number;
}

function beginHashing(types: TypedDataTypes): Hashing {
  return { structs: compileTypes(types), typeHashes: new Map(), valuesLeft: valuesMax };
}

function hashStruct(hashing: Hashing, type: string, { value, at, depth = 0 }: Place): Uint8Array {
  if (depth > jsonDepthMax) throw new TypedDataFault(at, `nests deeper than ${jsonDepthMax}`);
  const fields = hashing.structs.get(type) ?? [];
  if (!isRecord(value)) throw new TypedDataFault(at, `is not a ${type}`);
  const names = new Set(fields.map(({ name }) => name));
  const stranger = Object.keys(value).find((name) => !names.has(name) && value[name] !== undefined);
  if (stranger !== undefined)
    throw new TypedDataFault(`${at}.${stranger}`, `is not part of ${type}`);
  const words = fields.map((field) =>
    encodeValue(hashing, field.type, {
      value: memberOf(value, field.name),
      at: `${at}.${field.name}`,
      depth,
    }),
  );
  return keccak256(concat([typeHashIn(hashing, type), ...words]));
}

function typeHashIn(hashing: Hashing, type: string): Uint8Array {
  const known = hashing.typeHashes.get(type);
  if (known !== undefined) return known;
  const hash = keccak256(bytesOfText(encodeTypeOf(hashing.structs, type)));
  hashing.typeHashes.set(type, hash);
  return hash;
}

function encodeValue(hashing: Hashing, type: string, place: Place): Uint8Array {
  const { value, at, depth = 0 } = place;
  hashing.valuesLeft -= 1;
  if (hashing.valuesLeft < 0)
    throw new TypedDataFault(at, `is one of more than ${valuesMax} values`);
  if (value === undefined) throw new TypedDataFault(at, "is missing");
  const kind = kindOf(type, hashing.structs);
  if (kind === null) throw new TypedDataFault(at, `has the unknown type ${type}`);
  switch (kind.kind) {
    case "array":
      return hashArray(hashing, kind, place);
    case "struct":
      return hashStruct(hashing, type, { value, at, depth: depth + 1 });
    case "string":
      return hashText(value, at);
    case "bytes":
      return keccak256(bytesOf(value, at));
    case "fixed-bytes":
      return fixedBytes(value, kind.size, at);
    case "address":
      return addressWord(value, at);
    case "bool":
      if (typeof value !== "boolean") throw new TypedDataFault(at, "is neither true nor false");
      return integerWord(value ? 1n : 0n);
    case "integer":
      break;
  }
  return integerWord(integerOf(value, kind, { at, type }));
}

function hashArray(
  hashing: Hashing,
  kind: { element: string; length: number | null },
  { value, at, depth = 0 }: Place,
): Uint8Array {
  if (depth >= jsonDepthMax) throw new TypedDataFault(at, `nests deeper than ${jsonDepthMax}`);
  if (!Array.isArray(value)) throw new TypedDataFault(at, "is not an array");
  if (kind.length !== null && value.length !== kind.length) {
    throw new TypedDataFault(at, `does not have ${kind.length} elements`);
  }
  if (value.length > hashing.valuesLeft) {
    throw new TypedDataFault(at, `holds more than ${valuesMax} values`);
  }
  const words = Array.from(value, (element: unknown, index) =>
    encodeValue(hashing, kind.element, { value: element, at: `${at}[${index}]`, depth: depth + 1 }),
  );
  return keccak256(concat(words));
}

function hashText(value: unknown, at: string): Uint8Array {
  if (typeof value !== "string") throw new TypedDataFault(at, "is not a text");
  if (!value.isWellFormed()) throw new TypedDataFault(at, "is not well-formed text");
  return keccak256(bytesOfText(value));
}

function bytesOf(value: unknown, at: string): Uint8Array {
  const bytes = typeof value === "string" ? bytesOfHex(value) : null;
  if (bytes === null) throw new TypedDataFault(at, "is not 0x and an even number of hex digits");
  return bytes;
}

function fixedBytes(value: unknown, size: number, at: string): Uint8Array {
  const bytes = bytesOf(value, at);
  if (bytes.length !== size) throw new TypedDataFault(at, `does not have ${size} bytes`);
  const word = new Uint8Array(32);
  word.set(bytes);
  return word;
}

function addressWord(value: unknown, at: string): Uint8Array {
  const address = typeof value === "string" && value.startsWith("0x") ? parseAddress(value) : null;
  if (address === null) throw new TypedDataFault(at, "is not an address");
  const word = new Uint8Array(32);
  word.set(bytesOf(address, at), 12);
  return word;
}

function integerOf(
  value: unknown,
  { bits, signed }: { bits: number; signed: boolean },
  { at, type }: { at: string; type: string },
): bigint {
  const integer = exactInteger(value);
  if (integer === null) {
    throw new TypedDataFault(at, "is not a whole number; above 2^53 it must be a text");
  }
  const min = signed ? -(2n ** BigInt(bits - 1)) : 0n;
  const max = 2n ** BigInt(signed ? bits - 1 : bits) - 1n;
  if (integer < min || integer > max) throw new TypedDataFault(at, `does not fit ${type}`);
  return integer;
}

function exactInteger(value: unknown): bigint | null {
  if (typeof value === "bigint") return value;
  if (typeof value === "number") return Number.isSafeInteger(value) ? BigInt(value) : null;
  if (typeof value !== "string" || value.length > 80) return null;
  return /^(?:0|-?[1-9][0-9]*|0x[0-9a-fA-F]+)$/.test(value) ? BigInt(value) : null;
}

/** Two's complement, big-endian. */
function integerWord(integer: bigint): Uint8Array {
  const word = new Uint8Array(32);
  const digits = BigInt.asUintN(256, integer).toString(16).padStart(64, "0");
  for (let at = 0; at < 32; at += 1)
    word[at] = Number.parseInt(digits.slice(at * 2, at * 2 + 2), 16);
  return word;
}

function memberOf(value: Readonly<Record<string, unknown>>, name: string): unknown {
  return Object.hasOwn(value, name) ? value[name] : undefined;
}

function concat(parts: readonly Uint8Array[]): Uint8Array {
  const joined = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

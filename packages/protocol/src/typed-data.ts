import { keccak256 } from "./keccak.ts";

import { parseAddress } from "./address.ts";
import { bytesOfHex, bytesOfText, hexOfBytes, isRecord, jsonDepthMax } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { bytesOfSize } from "./words.ts";
import {
  TypedDataFault,
  compileTypes,
  domainName,
  encodeTypeOf,
  kindOf,
} from "./typed-data-types.ts";
import type { Kind, Structs, TypedDataField, TypedDataTypes } from "./typed-data-types.ts";

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
  const separator = hashStruct(hashing, domainName, outermost("domain", document.domain));
  const parts = [Uint8Array.of(0x19, 0x01), separator];
  if (primaryType === domainName) {
    requireEmpty(document.message);
  } else {
    parts.push(hashStruct(hashing, primaryType, outermost("message", document.message)));
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
  return hexOfBytes(hashStruct(beginHashing(types), primaryType, outermost("message", message)));
}

/** The hash of a domain, by the `EIP712Domain` of `types` or by the one that its members imply. @throws {TypedDataFault} */
export function domainSeparator(
  domain: Readonly<Record<string, unknown>>,
  types: TypedDataTypes = {},
): Hex32 {
  const hashing = beginHashing(typesWithDomain(domain, types));
  return hexOfBytes(hashStruct(hashing, domainName, outermost("domain", domain)));
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

/** The state of hashing one document: its types, what they are, their hashes so far, and how many values may still come. */
interface Hashing {
  readonly structs: Structs;
  readonly kinds: Map<string, Kind | null>;
  readonly typeHashes: Map<string, Uint8Array>;
  valuesLeft: number;
}

/** A value and where it stands: a path as text is made for faults only, since a document may have thousands of values. */
interface Place {
  readonly value: unknown;
  /** Its name in a struct, or its index in an array. */
  readonly step: string | number;
  /** The struct or array that it is in. */
  readonly within: Place | null;
  readonly depth: number;
}

const outermost = (step: string, value: unknown): Place => ({
  value,
  step,
  within: null,
  depth: 0,
});

function pathOf({ step, within }: Place): string {
  if (within === null) return String(step);
  return pathOf(within) + (typeof step === "number" ? `[${step}]` : `.${step}`);
}

const faultAt = (place: Place, reason: string): TypedDataFault =>
  new TypedDataFault(pathOf(place), reason);

function beginHashing(types: TypedDataTypes): Hashing {
  return {
    structs: compileTypes(types),
    kinds: new Map(),
    typeHashes: new Map(),
    valuesLeft: valuesMax,
  };
}

function hashStruct(hashing: Hashing, type: string, place: Place): Uint8Array {
  const { value, depth } = place;
  if (depth > jsonDepthMax) throw faultAt(place, `nests deeper than ${jsonDepthMax}`);
  const fields = hashing.structs.get(type) ?? [];
  if (!isRecord(value)) throw faultAt(place, `is not a ${type}`);
  const names = new Set(fields.map(({ name }) => name));
  const stranger = Object.keys(value).find((name) => !names.has(name) && value[name] !== undefined);
  if (stranger !== undefined)
    throw new TypedDataFault(`${pathOf(place)}.${stranger}`, `is not part of ${type}`);
  const words = fields.map((field) =>
    encodeValue(hashing, field.type, {
      value: memberOf(value, field.name),
      step: field.name,
      within: place,
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

function kindIn({ kinds, structs }: Hashing, type: string): Kind | null {
  const known = kinds.get(type);
  if (known !== undefined) return known;
  const kind = kindOf(type, structs);
  kinds.set(type, kind);
  return kind;
}

function encodeValue(hashing: Hashing, type: string, place: Place): Uint8Array {
  const { value } = place;
  hashing.valuesLeft -= 1;
  if (hashing.valuesLeft < 0) throw faultAt(place, `is one of more than ${valuesMax} values`);
  if (value === undefined) throw faultAt(place, "is missing");
  const kind = kindIn(hashing, type);
  if (kind === null) throw faultAt(place, `has the unknown type ${type}`);
  switch (kind.kind) {
    case "array":
      return hashArray(hashing, kind, place);
    case "struct":
      return hashStruct(hashing, type, { ...place, depth: place.depth + 1 });
    case "string":
      return hashText(place);
    case "bytes":
      return keccak256(bytesOf(place));
    case "fixed-bytes":
      return fixedBytes(place, kind.size);
    case "address":
      return addressWord(place);
    case "bool":
      if (typeof value !== "boolean") throw faultAt(place, "is neither true nor false");
      return integerWord(value ? 1n : 0n);
    case "integer":
      break;
  }
  return integerWord(integerOf(place, kind, type));
}

function hashArray(
  hashing: Hashing,
  kind: { element: string; length: number | null },
  place: Place,
): Uint8Array {
  const { value } = place;
  if (place.depth >= jsonDepthMax) throw faultAt(place, `nests deeper than ${jsonDepthMax}`);
  if (!Array.isArray(value)) throw faultAt(place, "is not an array");
  if (kind.length !== null && value.length !== kind.length) {
    throw faultAt(place, `does not have ${kind.length} elements`);
  }
  if (value.length > hashing.valuesLeft) {
    throw faultAt(place, `holds more than ${valuesMax} values`);
  }
  const depth = place.depth + 1;
  const words = Array.from(value, (element: unknown, index) =>
    encodeValue(hashing, kind.element, { value: element, step: index, within: place, depth }),
  );
  return keccak256(concat(words));
}

function hashText(place: Place): Uint8Array {
  const { value } = place;
  if (typeof value !== "string") throw faultAt(place, "is not a text");
  if (!value.isWellFormed()) throw faultAt(place, "is not well-formed text");
  return keccak256(bytesOfText(value));
}

function bytesOf(place: Place): Uint8Array {
  const bytes = typeof place.value === "string" ? bytesOfHex(place.value) : null;
  if (bytes === null) throw faultAt(place, "is not 0x and an even number of hex digits");
  return bytes;
}

function fixedBytes(place: Place, size: number): Uint8Array {
  const bytes = bytesOf(place);
  if (bytes.length !== size) throw faultAt(place, `does not have ${size} bytes`);
  const word = new Uint8Array(32);
  word.set(bytes);
  return word;
}

function addressWord(place: Place): Uint8Array {
  const { value } = place;
  const address = typeof value === "string" && value.startsWith("0x") ? parseAddress(value) : null;
  if (address === null) throw faultAt(place, "is not an address");
  const word = new Uint8Array(32);
  word.set(bytesOfSize(address, 20), 12);
  return word;
}

function integerOf(
  place: Place,
  { bits, signed }: { bits: number; signed: boolean },
  type: string,
): bigint {
  const integer = exactInteger(place.value);
  if (integer === null) {
    throw faultAt(place, "is not a whole number; above 2^53 it must be a text");
  }
  const cut = signed ? BigInt.asIntN(bits, integer) : BigInt.asUintN(bits, integer);
  if (cut !== integer) throw faultAt(place, `does not fit ${type}`);
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
  const word = new DataView(new ArrayBuffer(32));
  for (let at = 0; at < 32; at += 8) word.setBigUint64(at, integer >> BigInt(192 - at * 8));
  return new Uint8Array(word.buffer);
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

import { isHexOf, isRecord, parseAddress, type Address, type Hex32 } from "@svc/protocol";
import { parseObject } from "./answer.ts";

/** The members of a JSON object from outside, each read as the type that it has to have. */
export interface Members {
  /** As they came. */
  readonly all: Readonly<Record<string, unknown>>;
  has: (name: string) => boolean;
  /** Not empty. */
  text: (name: string) => string;
  /** May be empty. */
  anyText: (name: string) => string;
  oneOf: <T extends string>(name: string, texts: readonly T[]) => T;
  /** A whole number from 0. */
  count: (name: string) => number;
  flag: (name: string) => boolean;
  /** 32 bytes in hex, in lower case. */
  hash: (name: string) => Hex32;
  hashes: (name: string, countMax: number) => Hex32[];
  address: (name: string) => Address;
  texts: (name: string) => string[];
  record: (name: string) => Record<string, unknown>;
  /** A list of objects. */
  records: (name: string) => Record<string, unknown>[];
}

/**
 * Opens the body of a webhook. For a body that is not a JSON object, `fault("body")` is thrown and not the parser's own
 * error, whose message would quote it.
 */
export function openBody(body: string, fault: (member: string) => Error): Members {
  const members = parseObject(body);
  if (members === null) throw fault("body");
  return openMembers(members, fault);
}

/** Opens an object; for a member that is missing or of another type, `fault` of its name is thrown. */
export function openMembers(
  members: Record<string, unknown>,
  fault: (member: string) => Error,
): Members {
  const read = <T>(name: string, parse: (value: unknown) => T | null): T => {
    const parsed = Object.hasOwn(members, name) ? parse(members[name]) : null;
    if (parsed === null) throw fault(name);
    return parsed;
  };
  return {
    all: members,
    has: (name) => Object.hasOwn(members, name),
    text: (name) => read(name, parseText),
    anyText: (name) => read(name, (value) => (typeof value === "string" ? value : null)),
    oneOf: (name, texts) => read(name, (value) => texts.find((text) => text === value) ?? null),
    count: (name) => read(name, (value) => (isCount(value) ? value : null)),
    flag: (name) => read(name, (value) => (typeof value === "boolean" ? value : null)),
    hash: (name) => read(name, parseHash),
    hashes: (name, countMax) =>
      read(name, (value) => {
        const hashes = parseList(value, parseHash);
        return hashes !== null && hashes.length <= countMax ? hashes : null;
      }),
    address: (name) =>
      read(name, (value) => (typeof value === "string" ? parseAddress(value) : null)),
    texts: (name) => read(name, (value) => parseList(value, parseText)),
    record: (name) => read(name, parseRecord),
    records: (name) => read(name, (value) => parseList(value, parseRecord)),
  };
}

/** 32 bytes in hex of any case, in lower case; null for anything else. */
function parseHash(value: unknown): Hex32 | null {
  return isHexOf(value, 32) ? `0x${value.slice(2).toLowerCase()}` : null;
}

const isCount = (value: unknown): value is number =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0;

function parseText(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function parseRecord(value: unknown): Record<string, unknown> | null {
  return isRecord(value) ? value : null;
}

function parseList<T>(value: unknown, parse: (each: unknown) => T | null): T[] | null {
  if (!Array.isArray(value)) return null;
  const parsed = value.map((each) => parse(each));
  return parsed.every((each) => each !== null) ? parsed : null;
}

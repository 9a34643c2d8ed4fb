import type { Action } from "../action.ts";
import { parseAddress } from "../address.ts";
import type { Address } from "../address.ts";
import { bytesOfHex, isHexOf, isShowable, secondsMax } from "../encoding.ts";
import type { Hex, Hex32 } from "../encoding.ts";
import { signatureCharactersMax } from "../signature.ts";

/** Why an answer is not valid. `member` is its name on the wire; null means the answer as a whole. */
export interface ResultFault {
  member: string | null;
  reason: string;
}

/** Thrown while an answer is read and turned into a `ResultFault` by {@link orFault}; never leaves this package. */
export class ResultRefused extends Error {
  override name = "ResultRefused";
  readonly fault: ResultFault;

  constructor(member: string | null, reason: string) {
    super(member === null ? reason : `${member}: ${reason}`);
    this.fault = { member, reason };
  }
}

/** What `read` returns, or the fault that it threw. */
export function orFault<T>(read: () => T): T | { fault: ResultFault } {
  try {
    return read();
  } catch (refusal) {
    if (refusal instanceof ResultRefused) return { fault: refusal.fault };
    throw refusal;
  }
}

/** The members of an answer as they came; numbers and lists of a query have been parsed already. */
export type Members = Readonly<Record<string, unknown>>;

const queryMembers: Readonly<Record<Action, ReadonlySet<string>>> = {
  "data-transfer": new Set(["svcID", "infos", "expiresAt", "signature", "error"]),
  login: new Set([
    "signature",
    "session",
    "svcID",
    "business",
    "approval",
    "validUntil",
    "epoch",
    "error",
  ]),
  td: new Set(["signature", "svcID", "error"]),
  request: new Set(["svcID", "id", "infos", "signature", "error"]),
  access: new Set(["svcID", "id", "proofs", "signature", "error"]),
  sign: new Set(["signature", "svcID", "error"]),
  tx: new Set(["txHash", "svcID", "signature", "error"]),
};

/** Every name that an app-link answer to the action, a refusal included, may append to the query of `conn`. */
export function queryMembersOf(action: Action): ReadonlySet<string> {
  return queryMembers[action];
}

const textMax = 4096;

export function optionalMember(members: Members, name: string): unknown {
  return Object.hasOwn(members, name) ? members[name] : undefined;
}

/** A text of at most `maxLength` characters that is not empty and can be shown. */
export function textMember(members: Members, name: string, maxLength = textMax): string {
  const value = optionalMember(members, name);
  if (value === undefined) throw new ResultRefused(name, "is missing");
  if (typeof value !== "string") throw new ResultRefused(name, "is not a text");
  if (value === "") throw new ResultRefused(name, "is empty");
  if (value.length > maxLength) {
    throw new ResultRefused(name, `is longer than ${maxLength} characters`);
  }
  if (!isShowable(value))
    throw new ResultRefused(name, "holds control or bidirectional characters");
  return value;
}

/** A signature in lower case: 65 bytes for an EOA, any number up to 16 KiB for a contract (ERC-1271, ERC-6492). */
export function signatureMember(members: Members, name: string): Hex {
  const text = textMember(members, name, signatureCharactersMax);
  const bytes = bytesOfHex(text);
  if (bytes === null || bytes.length === 0)
    throw new ResultRefused(name, "is not 0x and hex bytes");
  return lowerHex(text);
}

export function addressMember(members: Members, name: string): Address {
  const address = parseAddress(textMember(members, name));
  if (address === null) throw new ResultRefused(name, "is not an address");
  return address;
}

export function hashMember(members: Members, name: string): Hex32 {
  const text = textMember(members, name);
  if (!isHexOf(text, 32)) throw new ResultRefused(name, "is not 0x and 32 bytes in hex");
  return lowerHex(text);
}

/** Unix seconds. */
export function secondsMember(members: Members, name: string): number {
  const value = countMember(members, name);
  if (value > secondsMax) throw new ResultRefused(name, "is not a time in Unix seconds");
  return value;
}

/** A whole number from 0 that a JSON number holds exactly. */
export function countMember(members: Members, name: string): number {
  const value = optionalMember(members, name);
  if (value === undefined) throw new ResultRefused(name, "is missing");
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new ResultRefused(name, "is not a whole number");
  }
  return value;
}

/** Reads the members of an inner object, and puts its name before theirs in faults. */
export function within<T>(at: string, read: () => T): T {
  try {
    return read();
  } catch (refusal) {
    if (!(refusal instanceof ResultRefused)) throw refusal;
    const { member, reason } = refusal.fault;
    throw new ResultRefused(member === null ? at : `${at}.${member}`, reason);
  }
}

function lowerHex(text: string): Hex {
  return `0x${text.slice(2).toLowerCase()}`;
}

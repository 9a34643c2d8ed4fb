import assert from "node:assert/strict";
import type { Clock } from "./clock.ts";
import type { Random } from "./context.ts";

/** Writes Unix milliseconds into the first 48 bits, which suffice until the year 10889. */
function writeTime(bytes: Buffer, clock: Clock): Buffer {
  bytes.writeUIntBE(Math.floor(clock.nowMs()), 0, 6);
  return bytes;
}

/** A UUIDv7 in lower case (RFC 9562 section 5.7): milliseconds, then 74 random bits. Ids of one millisecond are unordered. */
export function uuidv7(clock: Clock, random: Random): string {
  const bytes = writeTime(Buffer.concat([Buffer.alloc(6), random.bytes(10)]), clock);
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x70, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  return uuidOfBytes(bytes);
}

/** The UUID of 16 bytes, in the spelling of the database. */
export function uuidOfBytes(bytes: Buffer): string {
  const hex = bytes.toString("hex");
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

/** The 16 bytes of a UUID: less than half as long as its text. */
export function bytesOfUuid(uuid: string): Buffer {
  return Buffer.from(uuid.replaceAll("-", ""), "hex");
}

/**
 * The canonical, lower-case form of a UUID, or null: anything else cannot be the id of a row and need not be looked up.
 */
export function parseUuid(text: string): string | null {
  const lower = text.toLowerCase();
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(lower) ? lower : null;
}

/** Sorts after every UUID: the start of the first page of a list that is read newest first. */
export const lastUuid = "ffffffff-ffff-ffff-ffff-ffffffffffff";

/** Sorts before every UUID: the start of a purge that reads a table page by page. */
export const firstUuid = "00000000-0000-0000-0000-000000000000";

/** The ULID that a text spells in upper case, or null. */
export function parseUlid(text: string): string | null {
  return /^[0-9A-HJKMNP-TV-Z]{26}$/.test(text) ? text : null;
}

/** As {@link lastUuid}, after every ULID. */
export const lastUlid = "Z";

/** Crockford's base 32: no I, L, O, U. */
const ulidAlphabet = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";
const ulidLength = 26;

/** A ULID in upper case, 26 characters: milliseconds, then 80 random bits. Ids of one millisecond are unordered. */
export function ulid(clock: Clock, random: Random): string {
  const bytes = writeTime(Buffer.concat([Buffer.alloc(6), random.bytes(10)]), clock);
  let rest = BigInt(`0x${bytes.toString("hex")}`);
  let text = "";
  for (let index = 0; index < ulidLength; index += 1) {
    text = `${ulidAlphabet[Number(rest & 31n)]}${text}`;
    rest >>= 5n;
  }
  return text;
}

/** The least number of bytes of an id that nobody may guess. */
const secretIdBytesMin = 16;

/**
 * A random id that cannot be guessed, base64url without padding. It never begins with a hyphen: people paste ids after
 * commands, which would take such an id for an option.
 *
 * @param bytes at least 16
 */
export function randomId(random: Pick<Random, "bytes">, bytes: number): string {
  assert(bytes >= secretIdBytesMin, "an id that must not be guessed has at least 128 bits");
  for (;;) {
    const id = random.bytes(bytes).toString("base64url");
    if (!id.startsWith("-")) return id;
  }
}

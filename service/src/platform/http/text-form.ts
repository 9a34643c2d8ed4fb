import { Type } from "./schema.ts";

const wordsOfPattern = new Map<string, string>();

/** A form of texts, and how a refusal describes it after the member's name: "must be a whole number". */
function formOf(pattern: string, words: string) {
  wordsOfPattern.set(pattern, words);
  return (options: { description?: string; minLength?: number; maxLength?: number } = {}) =>
    Type.String({ pattern, ...options });
}

/** What a refusal says that a text of this pattern must be; undefined for a pattern that was not made here. */
export function sayPattern(pattern: unknown): string | undefined {
  return typeof pattern === "string" ? wordsOfPattern.get(pattern) : undefined;
}

/** The items of a page. */
export const pageSize = formOf("^([1-9][0-9]?|100)$", "must be a whole number from 1 to 100");
/** A number of events, attempts or the like: up to nine digits, zero among them. */
export const wholeNumber = formOf("^[0-9]{1,9}$", "must be a whole number");
/** The same, but from one on. */
export const wholeFromOne = formOf("^[1-9][0-9]{0,8}$", "must be a whole number from 1 on");
/** A UUID as PostgreSQL accepts it: the format `uuid` of JSON Schema would also allow `urn:uuid:` before it. */
export const uuid = formOf(
  "^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$",
  "must be a UUID in lower case",
);
/** A hash, as attestations and receipts write it. */
export const hash32 = formOf("^0x[0-9a-fA-F]{64}$", "must be 0x and 64 hex digits");
export const sixDigits = formOf("^[0-9]{6}$", "must be six digits");
export const base64url = formOf("^[A-Za-z0-9_-]+$", "must be base64url");
/** The key by which a repeated call is recognised as the same call. */
export const idempotencyKey = formOf(
  "^[\\x21-\\x7e]{1,255}$",
  "must be 1 to 255 visible ASCII characters",
);

import { Type } from "./schema.ts";

/** The least and the greatest number that texts of a form spell. */
interface Bounds {
  readonly minimum: number;
  readonly maximum: number;
}

const wordsOfPattern = new Map<string, string>();
const boundsOfPattern = new Map<unknown, Bounds>();

/**
 * A form of texts, and how a refusal describes it after the member's name: "must be a whole number".
 *
 * @param bounds of texts in an address that spell whole numbers
 */
function formOf(pattern: string, words: string, bounds?: Bounds) {
  wordsOfPattern.set(pattern, words);
  if (bounds !== undefined) boundsOfPattern.set(pattern, bounds);
  return (options: { description?: string; minLength?: number; maxLength?: number } = {}) =>
    Type.String({ pattern, ...options });
}

/** The words of a refusal for a text that does not match this pattern; undefined for a pattern not made here. */
export function sayPattern(pattern: unknown): string | undefined {
  return typeof pattern === "string" ? wordsOfPattern.get(pattern) : undefined;
}

/** The bounds of a pattern whose texts spell whole numbers; undefined for any other. */
export const numbersOfPattern = (pattern: unknown): Bounds | undefined =>
  boundsOfPattern.get(pattern);

/** The items of a page. */
export const pageSize = formOf("^([1-9][0-9]?|100)$", "must be a whole number from 1 to 100", {
  minimum: 1,
  maximum: 100,
});
/** A number of events, attempts or the like: up to nine digits, zero among them. */
export const wholeNumber = formOf("^[0-9]{1,9}$", "must be a whole number", {
  minimum: 0,
  maximum: 999_999_999,
});
/** As {@link wholeNumber}, but from one on. */
export const wholeFromOne = formOf("^[1-9][0-9]{0,8}$", "must be a whole number from 1 on", {
  minimum: 1,
  maximum: 999_999_999,
});
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

/** `0x` and an even number of lower-case hex digits, if it was made by this package. */
export type Hex = `0x${string}`;
/** 32 bytes as `Hex`: 66 characters. */
export type Hex32 = `0x${string}`;

const textEncoder = new TextEncoder();
const textDecoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

const hexOfByte = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, "0"));

/** UTF-8 bytes of a text. A lone surrogate becomes U+FFFD, as `TextEncoder` does everywhere. */
export function bytesOfText(text: string): Uint8Array {
  return textEncoder.encode(text);
}

/** The text of UTF-8 bytes, or null if they are not valid UTF-8. A byte order mark is kept. */
export function textOfBytes(bytes: Uint8Array): string | null {
  try {
    return textDecoder.decode(bytes);
  } catch {
    return null;
  }
}

export function hexOfBytes(bytes: Uint8Array): Hex {
  let text = "";
  for (const byte of bytes) text += hexOfByte[byte] ?? "";
  return `0x${text}`;
}

/** Bytes of `0x` and an even number of hex digits of any case; null for anything else. */
export function bytesOfHex(text: string): Uint8Array | null {
  if (!/^0x(?:[0-9a-fA-F]{2})*$/.test(text)) return null;
  const bytes = new Uint8Array(text.length / 2 - 1);
  for (let at = 0; at < bytes.length; at += 1) {
    bytes[at] = (hexDigit(text, 2 + at * 2) << 4) | hexDigit(text, 3 + at * 2);
  }
  return bytes;
}

/** The value of a character that is known to be a hex digit: letters differ in one bit by case, digits lack it. */
function hexDigit(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code < 0x40 ? code - 0x30 : (code & 0xdf) - 0x37;
}

/** Whether the text is `0x` and the hex digits, of any case, of exactly `bytes` bytes. */
export function isHexOf(text: unknown, bytes: number): text is Hex {
  return typeof text === "string" && text.length === 2 + bytes * 2 && /^0x[0-9a-fA-F]*$/.test(text);
}

const base64urlAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const base64Alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/** RFC 4648 section 5, without padding. */
export function base64urlOfBytes(bytes: Uint8Array): string {
  return encode64(bytes, base64urlAlphabet);
}

/**
 * RFC 4648 section 5, without padding. Null for padding, for other characters, and for spare bits that are not zero:
 * every byte string has exactly one spelling, so a token cannot be written in two ways.
 */
export function bytesOfBase64url(text: string): Uint8Array | null {
  return decode64(text, base64urlAlphabet);
}

/** RFC 4648 section 4, with padding. */
export function base64OfBytes(bytes: Uint8Array): string {
  const text = encode64(bytes, base64Alphabet);
  return text.padEnd(Math.ceil(text.length / 4) * 4, "=");
}

/** RFC 4648 section 4; the padding is required and spare bits are zero. Null for anything else. */
export function bytesOfBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0) return null;
  const padding = text.endsWith("==") ? 2 : Number(text.endsWith("="));
  return decode64(text.slice(0, text.length - padding), base64Alphabet);
}

/** Collects bytes first: appending to a text character by character takes seconds for the images of one request. */
function encode64(bytes: Uint8Array, alphabet: string): string {
  const characters = bytesOfText(alphabet);
  const text = new Uint8Array(Math.ceil(bytes.length / 3) * 4);
  for (let from = 0, to = 0; from < bytes.length; from += 3, to += 4) {
    const group =
      ((bytes[from] ?? 0) << 16) | ((bytes[from + 1] ?? 0) << 8) | (bytes[from + 2] ?? 0);
    text[to] = characters[group >> 18] ?? 0;
    text[to + 1] = characters[(group >> 12) & 63] ?? 0;
    text[to + 2] = characters[(group >> 6) & 63] ?? 0;
    text[to + 3] = characters[group & 63] ?? 0;
  }
  return textDecoder.decode(text.subarray(0, Math.ceil((bytes.length * 4) / 3)));
}

const valuesOf = (alphabet: string): Uint8Array => {
  const values = new Uint8Array(128).fill(255);
  for (let value = 0; value < alphabet.length; value += 1)
    values[alphabet.charCodeAt(value)] = value;
  return values;
};
const base64urlValues = valuesOf(base64urlAlphabet);
const base64Values = valuesOf(base64Alphabet);

function decode64(text: string, alphabet: string): Uint8Array | null {
  if (text.length % 4 === 1) return null;
  const values = alphabet === base64urlAlphabet ? base64urlValues : base64Values;
  const bytes = new Uint8Array(Math.floor((text.length * 3) / 4));
  let bits = 0;
  let held = 0;
  let length = 0;
  for (let at = 0; at < text.length; at += 1) {
    const value = values[text.charCodeAt(at)] ?? 255;
    if (value === 255) return null;
    held = (held << 6) | value;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      bytes[length] = held >> bits;
      length += 1;
    }
    held &= (1 << bits) - 1;
  }
  return held === 0 ? bytes : null;
}

/** The greatest depth of nested JSON (decisions, section 1, bounds). */
export const jsonDepthMax = 32;

/**
 * An ordinary body of 64 KiB cannot hold more values than this, and no larger body needs more. Empty lists and objects
 * count twice.
 */
export const jsonValuesMax = 65_536;

const [quote, backslash, comma, bracket, brace] = [0x22, 0x5c, 0x2c, 0x5b, 0x7b] as const;

/**
 * Whether a JSON text holds more than `valuesMax` values. Call it before parsing: 8 MiB of nothing but empty
 * objects take seconds and hundreds of MiB to parse. The answer means nothing if the text is not JSON.
 */
export function hasTooManyValues(json: Uint8Array, valuesMax: number = jsonValuesMax): boolean {
  // Every value but the first is preceded by a byte of its own.
  if (json.length <= valuesMax) return false;
  let count = 0;
  for (let at = 0; at < json.length && count <= valuesMax; at += 1) {
    const byte = json[at];
    if (byte === quote) at = endOfText(json, at + 1);
    else if (byte === comma || byte === bracket || byte === brace) count += 1;
  }
  return count > valuesMax;
}

/** Where a JSON string that begins here ends: at the first quote after an even number of backslashes. */
function endOfText(json: Uint8Array, from: number): number {
  for (let end = nextQuote(json, from); end >= 0; end = nextQuote(json, end + 1)) {
    let escapes = end;
    while (escapes > from && json[escapes - 1] === backslash) escapes -= 1;
    if ((end - escapes) % 2 === 0) return end;
  }
  return json.length;
}

/**
 * The runtime's own search is fast over images of several MiB, but costs more than a loop if the next quote is near.
 */
function nextQuote(json: Uint8Array, from: number): number {
  const far = from + 32;
  for (let at = from; at < far; at += 1) if (json[at] === quote) return at;
  return json.indexOf(quote, far);
}

/**
 * The one spelling of a JSON value that everybody hashes: RFC 8785 (no white space, members sorted by UTF-16 code
 * units, numbers as ECMAScript writes them).
 *
 * @throws {TypeError} for what JSON cannot express in exactly one way: undefined, functions, bigints, numbers that are
 *   not finite, texts with a lone surrogate, and values nested deeper than `jsonDepthMax`
 */
export function canonicalJson(value: unknown): string {
  return canonical(value, 0);
}

function canonical(value: unknown, depth: number): string {
  if (depth > jsonDepthMax)
    throw new TypeError(`canonical JSON nests at most ${jsonDepthMax} deep`);
  if (value === null || typeof value === "boolean") return JSON.stringify(value);
  if (typeof value === "number" && Number.isFinite(value)) return JSON.stringify(value);
  if (typeof value === "string" && value.isWellFormed()) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map((each) => canonical(each, depth + 1)).join(",")}]`;
  if (!isRecord(value)) throw new TypeError("canonical JSON cannot hold this value");
  const members = Object.keys(value)
    .toSorted()
    .map((name) => `${canonical(name, depth + 1)}:${canonical(value[name], depth + 1)}`);
  return `{${members.join(",")}}`;
}

/** Whether a value is a JSON object: neither null nor an array. */
export function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * Whether a text can be shown without lying about its own order or hiding parts of itself: well-formed,
 * without control characters (line feed excepted), line and paragraph separators, and bidirectional controls (decisions,
 * section 1, bounds).
 */
export function isShowable(text: string): boolean {
  return text.isWellFormed() && !unshowable.test(text);
}

// C0 without LF, DEL, C1; ALM, LRM, RLM; line and paragraph separator; embeddings, overrides, isolates.
const unshowable =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;

/** The last second of the year 9999, in Unix seconds: no time on the wire is later. */
export const secondsMax = 253_402_300_799;

/**
 * The length of a text in the sense of all bounds: the number of its code points, as JSON Schema counts (validation,
 * section 6.3.1).
 */
export function lengthOf(text: string): number {
  let length = text.length;
  for (const _ of text.matchAll(/[\ud800-\udbff][\udc00-\udfff]/g)) length -= 1;
  return length;
}

/** Whether a text shows nothing at all: spaces, characters of no width, and the fillers that fonts draw as a space. */
export function isBlank(text: string): boolean {
  return !visible.test(text);
}

// U+2800, the braille pattern without dots, is drawn but empty; the Hangul filler is ignorable, as characters of no
// width are.
const visible = /[^\p{White_Space}\p{Default_Ignorable_Code_Point}\p{Cf}\u2800]/u;

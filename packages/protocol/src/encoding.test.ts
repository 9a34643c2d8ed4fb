import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import * as fc from "fast-check";

import {
  base64OfBytes,
  base64urlOfBytes,
  bytesOfBase64,
  bytesOfBase64url,
  bytesOfHex,
  bytesOfText,
  canonicalJson,
  hasTooManyValues,
  hexOfBytes,
  isBlank,
  isShowable,
  jsonValuesMax,
  textOfBytes,
} from "./encoding.ts";

test("hex, Base64 and base64url are Node's and read back", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 80 }), (bytes) => {
      const buffer = Buffer.from(bytes);
      assert.equal(hexOfBytes(bytes), `0x${buffer.toString("hex")}`);
      assert.equal(base64OfBytes(bytes), buffer.toString("base64"));
      assert.equal(base64urlOfBytes(bytes), buffer.toString("base64url"));
      assert.deepEqual(bytesOfHex(hexOfBytes(bytes)), bytes);
      assert.deepEqual(bytesOfHex(`0x${buffer.toString("hex").toUpperCase()}`), bytes);
      assert.deepEqual(bytesOfBase64(base64OfBytes(bytes)), bytes);
      assert.deepEqual(bytesOfBase64url(base64urlOfBytes(bytes)), bytes);
    }),
  );
});

test("a byte string has one spelling only", () => {
  for (const text of ["A", "AB", "AAAAA", "AA==", "AA\n", "A+", "A/", "é", "AA "]) {
    assert.equal(bytesOfBase64url(text), null, text);
  }
  for (const text of ["A", "AA", "AB==", "AA=A", "A===", "====", "AA-_", "AAAA\n", "AAA=AAA="]) {
    assert.equal(bytesOfBase64(text), null, text);
  }
  for (const text of ["", "00", "0x0", "0xg0", "0x00\n", "0X00"])
    assert.equal(bytesOfHex(text), null, text);
});

test("bytes that are not UTF-8 are no text", () => {
  assert.equal(textOfBytes(Uint8Array.of(0xff)), null);
  assert.equal(textOfBytes(Uint8Array.of(0xed, 0xa0, 0x80)), null);
  assert.equal(textOfBytes(Uint8Array.of(0xef, 0xbb, 0xbf, 0x41)), "\ufeffA");
});

test("canonical JSON has sorted members, no white space and one spelling of numbers", () => {
  assert.equal(
    canonicalJson({ b: [1, 1e3, -0], a: { z: null, "": "é\n\u0001" } }),
    '{"a":{"":"é\\n\\u0001","z":null},"b":[1,1000,0]}',
  );
  // The example of RFC 8785, section 3.2.3: by UTF-16 code units, not by code points.
  const names = ["\u20ac", "\r", "\ufb33", "1", "\ud83d\ude00", "\u0080", "\u00f6"];
  const sorted = ["\r", "1", "\u0080", "\u00f6", "\u20ac", "\ud83d\ude00", "\ufb33"];
  assert.deepEqual(
    Object.keys(
      JSON.parse(canonicalJson(Object.fromEntries(names.map((name) => [`k${name}`, 0])))),
    ),
    sorted.map((name) => `k${name}`),
  );
});

test("canonical JSON of what JSON cannot say in one way is refused", () => {
  const deep = (levels: number): unknown => (levels === 0 ? 0 : [deep(levels - 1)]);
  assert.equal(typeof canonicalJson(deep(32)), "string");
  for (const value of [
    undefined,
    1n,
    Number.NaN,
    Infinity,
    () => 1,
    "\ud800",
    [undefined],
    { a: undefined },
    deep(33),
  ]) {
    assert.throws(() => canonicalJson(value), TypeError);
  }
});

const listOf = (count: number, each: string): string =>
  `[${Array(count - 1)
    .fill(each)
    .join(",")}]`;
const tooMany = (json: string): boolean => hasTooManyValues(bytesOfText(json));

test("too many values of a JSON text are counted before it is parsed, and never those inside of its texts", () => {
  for (const each of ["{}", "[]", '""', "12", '"\\",[{"'])
    assert.equal(tooMany(listOf(jsonValuesMax / 2, each)), false, each);
  for (const each of ["{}", "[]"])
    assert.equal(tooMany(listOf(jsonValuesMax / 2 + 2, each)), true, each);
  assert.equal(tooMany(listOf(jsonValuesMax + 1, "1")), false);
  assert.equal(tooMany(listOf(jsonValuesMax + 2, "1")), true);
  assert.equal(tooMany("[".repeat(jsonValuesMax + 1)), true);
  assert.equal(tooMany(JSON.stringify({ text: '[,{"\\'.repeat(jsonValuesMax) })), false);
  const long = "a".repeat(100);
  const commas = ",".repeat(jsonValuesMax + 1);
  for (const before of ["", long, `${long}\\`, `${long}"[`, `${long}\\"`, `"\\${long}`]) {
    assert.equal(tooMany(`[${JSON.stringify(before)}${commas}]`), true, before);
    assert.equal(tooMany(`[${JSON.stringify(before)},"${commas}"]`), false, before);
  }
});

test("texts that lie about themselves are not showable", () => {
  for (const text of ["", "a\nb", "Zoë 東京 🦊", "אבג"]) assert.ok(isShowable(text), text);
  for (const text of [
    "\u0000",
    "a\rb",
    "\t",
    "\u007f",
    "\u0085",
    "\u200f",
    "\u202e",
    "\u2066",
    "\u2028",
    "\ud800",
  ]) {
    assert.ok(!isShowable(text), JSON.stringify(text));
  }
});

test("a text of spaces, fillers and characters without width is blank", () => {
  for (const text of [
    "",
    " \n",
    "\u00a0",
    "\u200b\u2060",
    "\u3164",
    "\u2800",
    "\u00ad\ufe0f",
    "\u{e0041}",
  ])
    assert.ok(isBlank(text), JSON.stringify(text));
  for (const text of ["a", "\u200b.", "東", "👩\u200d🚀", "א"]) assert.ok(!isBlank(text), text);
});

test("every control and every bidirectional control is unshowable, and no character beside them", () => {
  const ranges: [first: number, last: number][] = [
    [0x00, 0x09],
    [0x0b, 0x1f],
    [0x7f, 0x9f],
    [0x061c, 0x061c],
    [0x200e, 0x200f],
    [0x2028, 0x202e],
    [0x2066, 0x2069],
    // Halves of characters: no text at all.
    [0xd800, 0xdfff],
  ];
  for (let code = 0; code <= 0xffff; code += 1) {
    const isListed = ranges.some(([first, last]) => first <= code && code <= last);
    assert.equal(isShowable(String.fromCharCode(code)), !isListed, code.toString(16));
  }
});

test("the reference of links names every character that no text holds", () => {
  const page = join(import.meta.dirname, "../../../docs/reference/links.md");
  const code = "U\\+([0-9A-F]{4})";
  const named = new Set<number>();
  for (const [, first = "", last = first] of readFileSync(page, "utf8").matchAll(
    new RegExp(`${code}(?: to ${code})?`, "g"),
  ))
    for (let each = Number(`0x${first}`); each <= Number(`0x${last}`); each += 1) named.add(each);
  for (let each = 0; each < 0xd800; each += 1)
    assert.equal(named.has(each), !isShowable(String.fromCharCode(each)), each.toString(16));
});

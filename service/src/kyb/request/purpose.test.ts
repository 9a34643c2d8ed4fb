import assert from "node:assert/strict";
import { test } from "node:test";
import { readPurpose } from "./purpose.ts";

test("a purpose has 8 to 280 characters, and something of it is seen", () => {
  for (const text of [
    "For terms",
    "a".repeat(280),
    "💥".repeat(280),
    "💥".repeat(8),
    "Line one\nline two",
    "ご利用条件の確認のため",
  ])
    assert.equal(readPurpose(text), text);
  for (const text of [
    "short",
    "a".repeat(281),
    "💥".repeat(281),
    "💥".repeat(7),
    `   short${" ".repeat(10)}`,
    // Zero-width spaces, Hangul fillers, the braille pattern without dots.
    "\u200b".repeat(10),
    "\u3164".repeat(10),
    "\u2800".repeat(10),
    "a \u202e b \u202e c",
  ])
    assert.throws(() => readPurpose(text), { reason: "invalid_request" }, JSON.stringify(text));
});

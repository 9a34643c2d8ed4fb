import assert from "node:assert/strict";
import { test } from "node:test";

import { bytesOfHex } from "@svc/protocol";

import { bytesAt, wordOf } from "./business-wallet.ts";

const word = (value: number): string => value.toString(16).padStart(64, "0");
const bytesIn = (hex: string): string => bytesAt(bytesOfHex(`0x${hex}`) ?? assert.fail());

test("bytes are read where the ABI puts them, and nowhere else", () => {
  const content = "ab".repeat(32);
  assert.equal(bytesIn(word(32) + word(32) + content), `0x${content}`);
  assert.equal(bytesIn(word(32) + word(3) + content), "0xababab");
  assert.equal(bytesIn(word(32) + word(0)), "0x");
  for (const other of [
    "",
    word(32),
    word(0) + word(32) + content,
    word(64) + word(32) + content,
    word(32) + word(33) + content,
    `${word(32)}${"f".repeat(64)}${content}`,
  ])
    assert.equal(bytesIn(other), "0x", other);
});

test("an argument of one word is read where it is exactly one word long, and not otherwise", () => {
  assert.equal(wordOf(`0x${word(7)}`)?.at(-1), 7);
  for (const other of ["0x", `0x${word(7)}00`, `0x${word(7).slice(2)}`] as const)
    assert.equal(wordOf(other), null);
});

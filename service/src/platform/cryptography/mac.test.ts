import assert from "node:assert/strict";
import { test } from "node:test";
import { equalBytes } from "./mac.ts";

test("byte strings are equal in every byte and in their length", () => {
  const bytes = Buffer.alloc(32, 7);
  assert.equal(equalBytes(bytes, Buffer.from(bytes)), true);
  for (let at = 0; at < bytes.length; at += 1) {
    const other = Buffer.from(bytes);
    other[at] = 8;
    assert.equal(equalBytes(bytes, other), false, `byte ${at}`);
    assert.equal(equalBytes(bytes, bytes.subarray(0, at)), false, `${at} bytes`);
    assert.equal(equalBytes(bytes.subarray(0, at), bytes), false, `${at} bytes`);
  }
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { isCodeOfKey } from "./members.ts";

test("an account without code has a key, and so has one whose key delegates to a contract", () => {
  const target = "c0".repeat(20);
  for (const code of ["0x", `0xef0100${target}`, `0xEF0100${target}`])
    assert.ok(isCodeOfKey(code), code);
  for (const code of ["0x00", `0xef0100${target}00`, `0xef0100${target.slice(2)}`, "0x6000"])
    assert.ok(!isCodeOfKey(code), code);
});

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseForm } from "./http-input.ts";

const some = (count: number): string => Array.from({ length: count }, () => "a=1").join("&");

test("200 parameters are read, and one more is refused", () => {
  assert.equal(parseForm(some(200))["a"]?.length, 200);
  assert.throws(() => parseForm(some(201)), { reason: "malformed_request" });
});

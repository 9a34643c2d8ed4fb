import assert from "node:assert/strict";
import { createSecretKey, randomBytes, randomUUID } from "node:crypto";
import { test } from "node:test";
import { makeRefreshToken, parseRefreshToken } from "./refresh-token.ts";

test("a refresh token with any character changed is not genuine", () => {
  const key = createSecretKey(Buffer.alloc(32, 7));
  const family = { id: randomUUID(), generation: 3 };
  const { text } = makeRefreshToken(key, family, { bytes: randomBytes });
  const parsed = parseRefreshToken(key, text);
  assert.deepEqual([parsed?.familyId, parsed?.generation], [family.id, 3]);
  for (let at = 0; at < text.length; at += 1) {
    if (text[at] === ".") continue;
    const digit = text[at] === "4" ? "5" : "4";
    assert.equal(parseRefreshToken(key, text.slice(0, at) + digit + text.slice(at + 1)), null);
  }
  assert.equal(parseRefreshToken(createSecretKey(Buffer.alloc(32, 8)), text), null);
});

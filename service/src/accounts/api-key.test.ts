import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { looksLikeApiKey, makeApiKey, parseApiKey } from "./api-key.ts";

void test("a key is read back as it was made", () => {
  for (const kind of ["live", "test", "mgmt", "issuer"] as const) {
    const made = makeApiKey(kind, randomInt);
    assert.match(made.text, new RegExp(`^svc_${kind}_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$`));
    assert.deepEqual(parseApiKey(made.text), made);
  }
});

void test("every single wrong character is found offline", () => {
  const { text } = makeApiKey("live", randomInt);
  for (let at = 0; at < text.length; at += 1) {
    const wrong = text[at] === "x" ? "y" : "x";
    assert.equal(parseApiKey(text.slice(0, at) + wrong + text.slice(at + 1)), null);
  }
});

void test("two swapped neighbours and another environment are found offline", () => {
  const { text } = makeApiKey("test", randomInt);
  const swapped = text.slice(0, 30) + text.slice(31, 32) + text.slice(30, 31) + text.slice(32);
  if (swapped !== text) assert.equal(parseApiKey(swapped), null);
  assert.equal(parseApiKey(text.replace("svc_test_", "svc_live_")), null);
});

void test("text around a key makes it no key, though it still looks like one", () => {
  const { text } = makeApiKey("live", randomInt);
  for (const other of [` ${text}`, `${text}\n`, `Bearer ${text}`, text.toUpperCase(), ""])
    assert.equal(parseApiKey(other), null);
  assert.equal(looksLikeApiKey(`Bearer ${text}`), true);
  assert.equal(looksLikeApiKey(text.slice(0, 12)), true);
  assert.equal(looksLikeApiKey("0x52908400098527886e0f7030069857d2e4169ee7"), false);
});

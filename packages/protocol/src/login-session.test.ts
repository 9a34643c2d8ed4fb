import assert from "node:assert/strict";
import { test } from "node:test";

import { buildLoginSession, isClaim, isLoginId, parseLoginSession } from "./login-session.ts";

const loginId = "abcdefghijklmnopqrstuQ";
const mac = "ABCDEFGHIJKLMNOPQRST-w";

test("a session string reads as login id, step and mac, and is written back", () => {
  const session = { loginId, step: 450_000_000, mac };
  assert.deepEqual(parseLoginSession(`${loginId}.450000000.${mac}`), session);
  assert.equal(buildLoginSession(session), `${loginId}.450000000.${mac}`);
  assert.ok(isLoginId(loginId));
});

test("any other spelling of a session string is refused", () => {
  const bad = [
    "",
    loginId,
    `${loginId}.1`,
    `${loginId}.01.${mac}`,
    `${loginId}.-1.${mac}`,
    `${loginId}.1000000000000.${mac}`,
    `${loginId}.1.${mac}.`,
    `${loginId}.1.${mac}\n`,
    `${loginId}.1.${mac.slice(1)}`,
    `${loginId}.1.${mac}A`,
    `${loginId.slice(0, -1)}R.1.${mac}`,
    `${loginId}.1.${mac.slice(0, -1)}x`,
    `${loginId}.1.${mac.replace("-", "+")}`,
  ];
  for (const text of bad) assert.equal(parseLoginSession(text), null, text);
  assert.ok(!isLoginId(`${loginId}=`));
});

test("a claim is base64url of exactly 32 bytes", () => {
  assert.ok(isClaim(Buffer.alloc(32, 255).toString("base64url")));
  assert.ok(!isClaim(Buffer.alloc(31).toString("base64url")));
  assert.ok(!isClaim(Buffer.alloc(33).toString("base64url")));
  assert.ok(!isClaim(`${"A".repeat(42)}B`));
});

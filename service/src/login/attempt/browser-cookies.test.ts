import assert from "node:assert/strict";
import { test } from "node:test";
import { parseConfig } from "../../platform/config/config.ts";
import {
  attemptCookies,
  endedSessionCookie,
  finishedAttemptCookie,
  restartedAttemptCookie,
  sessionCookie,
} from "./browser-cookies.ts";

test("under https the cookies are bound to the host, unreadable to scripts and never sent in clear", () => {
  const config = parseConfig({
    PROFILE: "production",
    BASE_URL: "https://id.example.com",
    DATABASE_URL: "postgres://nowhere/none",
    MASTER_KEY: "0123456789abcdef".repeat(4),
    CHAIN_RPC_URL: "http://nowhere",
    SIGNER_KEY: "22".repeat(32),
  });
  const made = { loginId: "a".repeat(22), secret: "s", createdAt: 1, lifetimeSeconds: 120 };
  const held = Array.from({ length: 9 }, (_, at) => `__Host-svc_login_${at}=${at}.x`).join("; ");
  const lines = [
    sessionCookie(config, "s"),
    endedSessionCookie(config),
    ...attemptCookies(config, held, made),
    finishedAttemptCookie(config, held, "0"),
    restartedAttemptCookie(config, held, "0"),
  ];
  assert.equal(lines.length, 7);
  for (const line of lines) {
    assert.match(line, /^__Host-svc_(session|login_\w+)=/);
    const attributes = new Set(line.split("; ").slice(1));
    for (const attribute of ["Path=/", "HttpOnly", "SameSite=Lax", "Secure"])
      assert.ok(attributes.has(attribute), line);
    assert.ok(!/domain/i.test(line));
  }
});

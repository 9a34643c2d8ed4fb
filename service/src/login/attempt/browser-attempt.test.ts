import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import type { LoginContext } from "../login-context.ts";
import { isStartedBy } from "./browser-attempt.ts";

test("a browser started a login if the hash of its secret is that of the login, byte for byte", () => {
  const ctx = { config: { baseUrl: "http://localhost:4000" } } as LoginContext;
  const id = randomBytes(16).toString("base64url");
  const secret = randomBytes(32).toString("base64url");
  const browser = { address: "", network: "", cookieHeader: `svc_login_${id}=1.${secret}` };
  const startedWith = (browserSha256: Buffer): boolean =>
    isStartedBy(ctx, { id, browserSha256 }, browser);
  assert.equal(startedWith(sha256(secret)), true);
  for (let at = 0; at < 32; at += 1) {
    const other = Buffer.from(sha256(secret));
    other[at] = (other[at] ?? 0) ^ 1;
    assert.equal(startedWith(other), false, `byte ${at}`);
  }
});

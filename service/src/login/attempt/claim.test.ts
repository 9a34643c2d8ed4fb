import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { claimOf } from "@svc/protocol";
import { isClaimedWith } from "./claim.ts";

test("a claim belongs to one secret, by every character, and never to a text that is not a secret", () => {
  const secret = randomBytes(32).toString("base64url");
  const claimSha256 = claimOf(secret);
  assert.equal(isClaimedWith({ claimSha256 }, secret), true);
  for (let at = 0; at < claimSha256.length; at += 1) {
    const other = claimSha256[at] === "A" ? "E" : "A";
    const changed = claimSha256.slice(0, at) + other + claimSha256.slice(at + 1);
    assert.equal(isClaimedWith({ claimSha256: changed }, secret), false, `character ${at}`);
  }
  for (const text of ["", claimSha256, secret.slice(1), `${secret}A`, "!".repeat(43)])
    assert.equal(isClaimedWith({ claimSha256 }, text), false, text);
  assert.equal(isClaimedWith({ claimSha256: null }, secret), false);
});

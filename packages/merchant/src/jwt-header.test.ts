import assert from "node:assert/strict";
import { test } from "node:test";

import { audience, clientId, openFakeIssuer } from "../test/fake-issuer.ts";
import { otherSpellings } from "../test/mutations.ts";
import { openMerchant } from "./index.ts";

test("a token whose signature is spelled in another way is refused, whatever signed it", async () => {
  await using fake = await openFakeIssuer();
  const redirectUri = "https://shop.example/callback";
  const merchant = openMerchant({ issuer: fake.url, clientId, redirectUri, now: () => fake.now });
  for (const key of fake.keys) {
    const id = await fake.sign("JWT", fake.idClaims(), { key });
    const access = await fake.sign("at+jwt", fake.accessClaims(), { key });
    const logout = await fake.sign("logout+jwt", fake.logoutClaims(), { key });
    const rows: [string, (jwt: string) => Promise<unknown>][] = [
      [id, merchant.verifyIdToken],
      [access, async (jwt) => merchant.verifyAccessToken(jwt, { audience })],
      [logout, merchant.login.verifyLogoutToken],
    ];
    for (const [jwt, verify] of rows) {
      await verify(jwt);
      const others = otherSpellings(jwt);
      assert.equal(others.length, 5);
      for (const other of others)
        await assert.rejects(verify(other), { code: "token_refused", reason: "form" });
    }
  }
});

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { alice, clientId, openFakeIssuer } from "../test/fake-issuer.ts";
import { openMerchant, type Merchant } from "./index.ts";

const root = join(import.meta.dirname, "../../..");
const guide = readFileSync(join(root, "docs/guides/login.md"), "utf8");

const trimmed = (text: string) => text.split("\n").map((line) => line.trim());

test("every line of code in the login guide stands, in this order, in the file it names", () => {
  const blocks = [...guide.matchAll(/<!-- (\S+) -->\n\n```ts\n([\s\S]*?)```/g)];
  assert.equal(
    blocks.length,
    [...guide.matchAll(/^```ts$/gm)].length,
    "every block names its file",
  );
  assert.ok(blocks.length > 5);
  for (const [, file = "", code = ""] of blocks) {
    const source = trimmed(readFileSync(join(root, file), "utf8")).join("\n");
    assert.ok(
      source.includes(trimmed(code).join("\n").trim()),
      `${file} no longer holds:\n${code}`,
    );
  }
});

test("every code of an error in the login guide exists", () => {
  const source = readFileSync(join(import.meta.dirname, "merchant-error.ts"), "utf8");
  const table = /\| `code`[\s\S]*?\n\n/.exec(guide)?.[0] ?? "";
  const codes = [...table.matchAll(/`([a-z]+_[a-z_]+)`/g)].map(([, code]) => code);
  assert.ok(codes.length > 10);
  for (const code of codes) assert.ok(source.includes(`  ${code}:`), code);
});

test("the guide's API knows who calls", async () => {
  await using fake = await openFakeIssuer();
  const merchant = openMerchant({
    issuer: fake.url,
    clientId,
    redirectUri: "http://localhost/callback",
  });
  const accessToken = await fake.sign("at+jwt", fake.accessClaims());
  assert.equal(await whoCalls(merchant, `Bearer ${accessToken}`, fake.now), alice);
  for (const header of ["", "Bearer", "Bearer x", `Basic ${accessToken}`]) {
    await assert.rejects(whoCalls(merchant, header, fake.now), { code: "token_refused" });
  }
});

async function whoCalls(merchant: Merchant, authorization: string, now: number): Promise<string> {
  const [, accessToken = ""] = /^Bearer (.+)$/i.exec(authorization) ?? [];
  const audience = "https://api.example.com";
  const { user } = await merchant.verifyAccessToken(accessToken, { audience, now });
  return user;
}

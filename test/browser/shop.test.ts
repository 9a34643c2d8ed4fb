import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";
import { openShop, type Shop } from "@svc/shop";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import {
  clientId,
  clientSecret,
  openFakeIssuer,
  type FakeIssuer,
} from "../../packages/merchant/test/fake-issuer.ts";
import { violationsOf } from "./axe.ts";
import { openBrowser } from "./browser.ts";

let browser: Browser & AsyncDisposable;
let issuer: FakeIssuer;
let shop: Shop;

before(async () => {
  browser = await openBrowser();
  issuer = await openFakeIssuer();
  const clockUrl = `${issuer.url}/health/ready`;
  const client = { issuer: issuer.url, clientId, clientSecret };
  shop = await openShop({ port: 0, host: "127.0.0.1", ...client, clockUrl });
});
after(async () => {
  await browser[Symbol.asyncDispose]();
  await shop.close();
  await issuer[Symbol.asyncDispose]();
});
beforeEach(() => {
  issuer.refusal = undefined;
});

const press = async (page: Page, name: string) => page.getByRole("button", { name }).click();

test("a person logs in, renews and logs out under the shop's own policy", async () => {
  const page = await browser.newPage();
  const complaints: string[] = [];
  page.on("console", (message) => complaints.push(message.text()));
  await page.goto(shop.url);
  await press(page, "Log in");
  await page.getByRole("heading", { name: "Hello 0x0000…11ce" }).waitFor();
  await press(page, "Refresh");
  await page.getByRole("heading", { name: "Hello" }).waitFor();
  await press(page, "Log out");
  await page.getByRole("button", { name: "Log in" }).waitFor();
  assert.equal(page.url(), `${shop.url}/`);
  assert.deepEqual(complaints, []);
  await page.close();
});

const looks: Record<string, BrowserContextOptions> = {
  "on a desk": {},
  "on a phone": { viewport: { width: 320, height: 640 } },
};
for (const [look, options] of Object.entries(looks)) {
  test(`axe finds nothing in the shop, and nothing sticks out, light or dark, ${look}`, async () => {
    // The page's content security policy would block axe, which is an injected script.
    const page = await browser.newPage({ ...options, bypassCSP: true });
    await page.goto(shop.url);
    await assertSound(page);
    await press(page, "Log in");
    await page.getByRole("heading", { name: "Hello" }).waitFor();
    await assertSound(page);
    issuer.refusal = "access_denied";
    await press(page, "Log out");
    await press(page, "Log in");
    await page.getByRole("heading", { name: "You declined the login" }).waitFor();
    await assertSound(page);
    issuer.refusal = undefined;
    await press(page, "Try again");
    await page.getByRole("heading", { name: "Hello" }).waitFor();
    await page.close();
  });
}

async function assertSound(page: Page): Promise<void> {
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    assert.deepEqual(await violationsOf(page), [], colorScheme);
    assert.ok(await page.evaluate("document.documentElement.scrollWidth <= innerWidth"));
  }
}

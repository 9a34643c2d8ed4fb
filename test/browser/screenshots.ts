// Takes the pictures that the docs show: node --conditions=source test/browser/screenshots.ts
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import type { BrowserContextOptions } from "playwright-core";
import { authorizationUrl, makePkce } from "../login-flow.ts";
import { newIdentity } from "../raw-wallet.ts";
import { openBrowser } from "./browser.ts";
import { openLoginStub } from "./login-stub.ts";
import { approveOnPage } from "./qr-page.ts";
import { openShopWorld } from "./shop-world.ts";

const directory = join(import.meta.dirname, "../../docs/images");
const base = "https://login.example.com";
const desktop = { viewport: { width: 1120, height: 760 } };
const phone = { viewport: { width: 390, height: 844 }, isMobile: true, hasTouch: true };

const pictures: {
  name: string;
  options: BrowserContextOptions;
  isClaimed?: boolean;
  isBusiness?: boolean;
}[] = [
  { name: "login-desktop", options: desktop },
  { name: "login-dark", options: { ...desktop, colorScheme: "dark" } },
  { name: "login-phone", options: phone },
  { name: "login-number", options: desktop, isClaimed: true },
  { name: "login-business", options: desktop, isBusiness: true },
  { name: "login-no-javascript", options: { ...desktop, javaScriptEnabled: false } },
];

await using browser = await openBrowser();
mkdirSync(directory, { recursive: true });
for (const { name, options, isClaimed, isBusiness = false } of pictures) {
  const endOfWait = Math.floor(Date.now() / 1000) + 840;
  const asked = isBusiness
    ? { isBusiness, scopes: ["openid", "business"], expiresAt: endOfWait }
    : {};
  await using stub = await openLoginStub({ base, ...asked });
  const context = await browser.newContext({ ...options, reducedMotion: "reduce" });
  const page = await context.newPage();
  await page.goto(`${stub.url}/oauth2/auth`);
  if (isClaimed === true) {
    stub.tell({ kind: "claimed", digits: "42", identity: "0x52ab…19fe" });
    await page.locator("[data-code]").waitFor();
  }
  if (isBusiness) {
    stub.tell({ kind: "gathering" });
    await page.getByRole("timer").waitFor();
  }
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
  await context.close();
}

// The way through the shop, and the page of a login that never began.
await using opened = await openShopWorld();
const { world, shop } = opened;
const context = await browser.newContext({ ...desktop, reducedMotion: "reduce" });
const page = await context.newPage();
const takePicture = async (name: string): Promise<void> => {
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
};
await page.goto(shop.url);
await takePicture("shop");
await page.getByRole("button", { name: "Log in" }).click();
await page.locator("[data-qr]").waitFor();
await approveOnPage(page, newIdentity(new Uint8Array(32).fill(7)));
await page.getByRole("heading", { name: "Hello" }).waitFor();
await takePicture("shop-greeting");
await page.goto(authorizationUrl(world.baseUrl, { ...world.client, id: "nobody" }, makePkce()));
await page.getByText("Details").click();
await takePicture("error");
await context.close();

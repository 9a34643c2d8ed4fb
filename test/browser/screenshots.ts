// Takes the pictures that the docs show: node --conditions=source test/browser/screenshots.ts
import { mkdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { BrowserContextOptions } from "playwright-core";
import { callWallet } from "../../packages/wallet/test/call-wallet.ts";
import { openDemoPlace, startDemo } from "../demo-world.ts";
import { authorizationUrl, makePkce } from "../login-flow.ts";
import { openBrowser } from "./browser.ts";
import { openLoginStub } from "./login-stub.ts";
import { readDigits, readQr } from "./qr-page.ts";

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

// The way through the demo shop, as somebody sees it who follows the guides.
await using place = await openDemoPlace();
const environment = { ...place.environment, PORT: "4000" };
await using demo = await startDemo(environment);
const context = await browser.newContext({ ...desktop, reducedMotion: "reduce" });
const page = await context.newPage();
const takePicture = async (name: string): Promise<void> => {
  await page.screenshot({ path: join(directory, `${name}.png`), fullPage: true });
};
const press = async (name: string): Promise<void> => page.getByRole("button", { name }).click();

async function wallet(name: string, ...args: string[]): Promise<Record<string, unknown>> {
  const { status, out, err } = await callWallet([...args, "--as", name], environment.DATA_DIR);
  if (status !== 0 && status !== 2) throw new Error(err);
  return JSON.parse(out) as Record<string, unknown>;
}

/** Alice answers the login page before which the browser is; the arguments say for whom. */
async function approveLogin(...args: string[]): Promise<void> {
  const link = await readQr(page);
  await wallet("alice", "approve", link);
  await wallet("alice", "approve", link, "--code", await readDigits(page), ...args);
}

/** The member approves what waits in the inbox. */
async function vote(name: string): Promise<void> {
  const { votes } = await wallet(name, "inbox");
  for (const { id } of votes as { id: string }[]) await wallet(name, "vote", id, "--approve");
}

await page.goto(demo.shopUrl);
await takePicture("shop");
await press("Log in");
await approveLogin();
await page.getByRole("heading", { name: "Hello" }).waitFor();
await takePicture("shop-greeting");

await press("Verify my age and e-mail");
const link = page.getByRole("link", { name: "Open my wallet on this device" });
await wallet("alice", "approve", (await link.getAttribute("href")) ?? "");
await page.getByText("Done: everything is recorded.").waitFor();
await takePicture("shop-fields");

await page.goto(`${demo.shopUrl}/company`);
await press("Log in for my company");
const { business } = JSON.parse(
  await readFile(join(environment.DATA_DIR, "demo.json"), "utf8"),
) as {
  business: { address: string };
};
await approveLogin("--business", business.address);
await vote("bob");
await press("Register your company");
await page.getByText("Waiting for the members").waitFor();
await vote("bob");
await vote("carol");
await page.getByRole("table").waitFor();
await takePicture("shop-company");

// The page of a login that never began.
const pkce = makePkce();
await page.goto(authorizationUrl(demo.baseUrl, { id: "nobody", redirectUri: demo.shopUrl }, pkce));
await page.getByText("Details").click();
await takePicture("error");
await context.close();

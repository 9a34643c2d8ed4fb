// What a person sees and hears when the login page changes, wherever the person looks and however large the text is.
import { after, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { openBrowser } from "./browser.ts";
import { hearStream } from "./hearing.ts";
import { type LoginStub, openLoginStub } from "./login-stub.ts";
import { setHidden } from "./qr-page.ts";

const browser = await openBrowser();
after(() => browser.close());

async function openPage(
  stub: LoginStub,
  options: BrowserContextOptions = {},
): Promise<Page & AsyncDisposable> {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  await page.goto(`${stub.url}/oauth2/auth`);
  return Object.assign(page, { [Symbol.asyncDispose]: async () => context.close() });
}

test("a page that comes into view with its connection back no longer calls it lost", async () => {
  await using stub = await openLoginStub();
  await using page = await openPage(stub);
  await hearStream(page, stub);
  await setHidden(page, true);
  stub.refusal = { status: 502 };
  await setHidden(page, false);
  const notice = page.locator("[data-offline]");
  await notice.waitFor();
  await setHidden(page, true);
  stub.refusal = null;
  await setHidden(page, false);
  await notice.waitFor({ state: "hidden" });
});

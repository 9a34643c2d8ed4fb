// What a person sees and hears when the login page changes, wherever the person looks and however large the text is.
import assert from "node:assert/strict";
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

test("a page asks at once when the machine has a network again, not when its next try is due", async () => {
  await using stub = await openLoginStub();
  await using page = await openPage(stub);
  await page.clock.install();
  await page.reload();
  await hearStream(page, stub);
  await page.clock.pauseAt(Date.now() + 5000);
  await setHidden(page, true);
  stub.refusal = { status: 502 };
  await setHidden(page, false);
  const notice = page.locator("[data-offline]");
  await notice.waitFor();
  stub.refusal = null;
  await page.evaluate('dispatchEvent(new Event("online"))');
  await notice.waitFor({ state: "hidden", timeout: 10_000 });
});

const claimed = { kind: "claimed", digits: "07", identity: "0x52ab…19fe" } as const;

test("at 400 % zoom whoever looked at the code sees the heading and the number in its place, in one line with large letters too", async () => {
  await using stub = await openLoginStub({ locale: "de" });
  // A window of 1280 by 1024 pixels.
  await using page = await openPage(stub, { viewport: { width: 320, height: 256 } });
  await page.locator("[data-qr]").evaluate((code) => code.scrollIntoView({ block: "center" }));
  stub.tell(claimed);
  for (const selector of ["[data-code]", "[data-state] h2"]) {
    const box = await page.locator(selector).boundingBox();
    const [top, bottom] = [box?.y ?? Number.NaN, (box?.y ?? 0) + (box?.height ?? 0)];
    assert.ok(top > -1 && bottom < 257, `${selector} from ${top} to ${bottom}`);
  }
  // A browser whose letters are set to twice their size.
  const session = await page.context().newCDPSession(page);
  await session.send("Page.setFontSizes", { fontSizes: { standard: 32 } });
  const number = "document.querySelector('[data-code]')";
  assert.equal(await page.evaluate(`getComputedStyle(${number}).fontSize`), "112px");
  const lines = await page.evaluate<number>(
    `{ const digits = document.createRange(); digits.selectNodeContents(${number}); digits.getClientRects().length; }`,
  );
  assert.equal(lines, 1);
  assert.ok(await page.evaluate<boolean>("document.documentElement.scrollWidth <= innerWidth"));
});

test("what is said of a second wallet goes with the identity of which it speaks", async () => {
  for (const next of ["gathering", "failed"] as const) {
    await using stub = await openLoginStub({ isBusiness: true });
    await using page = await openPage(stub);
    stub.tell({ ...claimed, contested: true });
    await page.getByRole("alert").waitFor();
    stub.tell({ kind: next, failure: "wrong_number" });
    await page.locator("[data-identity]").waitFor({ state: "detached" });
    assert.ok(await page.locator("[data-contested]").isHidden(), next);
  }
});

test("marks stacked on one letter of a name stay out of the column beside it", async () => {
  const clientName = `A${"\u0301\u0332\u0488\u0316\u0323".repeat(16)}lpine`;
  await using stub = await openLoginStub({ clientName });
  await using page = await openPage(stub, { viewport: { width: 1120, height: 760 } });
  await page.waitForLoadState();
  for (const selector of ["h1", ".receives p"]) {
    const overflow = await page.evaluate(
      `getComputedStyle(document.querySelector("${selector}")).overflowX`,
    );
    assert.equal(overflow, "clip", selector);
  }
});

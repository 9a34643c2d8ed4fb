// What a person sees and hears when the login page changes, wherever the person looks and however large the text is.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { openBrowser } from "./browser.ts";
import { hearStream, listenForAnswer } from "./hearing.ts";
import { holdClock, moveUntil } from "./held-clock.ts";
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
  await holdClock(page);
  await page.reload();
  await hearStream(page, stub);
  await setHidden(page, true);
  stub.refusal = { status: 502 };
  await setHidden(page, false);
  const notice = page.locator("[data-offline]");
  await notice.waitFor();
  stub.refusal = null;
  await page.evaluate('dispatchEvent(new Event("online"))');
  await notice.waitFor({ state: "hidden" });
});

/** A page whose status requests get no answer any more: each fails at once, or hangs. */
async function openUnheard(stub: LoginStub, how: "refused" | "swallowed") {
  const page = await openPage(stub);
  await holdClock(page);
  await page.reload();
  await hearStream(page, stub);
  await listenForAnswer(page);
  await page.route(/\/status/, async (route) => (how === "refused" ? route.abort() : undefined));
  return page;
}

test("a service that does not answer keeps nobody waiting on a code that is over, and what it says later counts", async () => {
  for (const [how, later] of [
    ["refused", "approved"],
    ["refused", "waiting"],
    ["swallowed", "failed"],
  ] as const) {
    await using stub = await openLoginStub();
    await using page = await openUnheard(stub, how);
    await page.clock.runFor(121_000);
    await page.clock.runFor(3000);
    await page.getByRole("heading", { name: "The time is up" }).waitFor();
    assert.equal(await page.locator("[data-qr]").count(), 0);
    const button = page.getByRole("button", { name: "Start again" });
    await button.focus();
    stub.tell({ kind: later, failure: "expired", canRestart: true });
    await page.unroute(/\/status/);
    await page.clock.runFor(20_000);
    if (later === "approved")
      await moveUntil(page, "the way back", () => page.url() === `${stub.url}/callback?code=1`);
    else if (later === "waiting")
      await moveUntil(page, "a code", async () => page.locator("[data-qr]").isVisible());
    else {
      const answered = page.locator("html[data-answered]");
      await moveUntil(page, "an answer", async () => (await answered.count()) === 1);
      assert.ok(await button.evaluate((each) => each.matches(":focus")), "it is told twice");
    }
  }
});

test("a page that nobody answers says within half a minute that it has no connection", async () => {
  await using stub = await openLoginStub();
  await using page = await openUnheard(stub, "swallowed");
  await page.clock.runFor(20_000);
  await page.clock.runFor(10_000);
  await page.locator("[data-offline]").waitFor();
});

test("an approved login asks for its code for as long as it is kept, and says that it has no connection", async () => {
  await using stub = await openLoginStub();
  await using page = await openUnheard(stub, "refused");
  stub.finishes = [502, 502, 502, 502, `${stub.url}/callback?code=1`];
  stub.tell({ kind: "approved" });
  await page.locator("[data-offline]").waitFor();
  await moveUntil(page, "the way back", () => page.url() === `${stub.url}/callback?code=1`);
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

test("the warning of a second wallet disappears with the identity that it is about", async () => {
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

test("the title of every state sets a name from right to left apart, whichever state came first", async () => {
  for (const state of [{ kind: "waiting" }, { ...claimed, contested: false }] as const) {
    await using stub = await openLoginStub({ clientName: "מוסך (Garage)", state });
    await using page = await openPage(stub);
    stub.tell({ kind: "failed", failure: "expired" });
    await page.getByRole("heading", { name: "The time is up" }).waitFor();
    assert.equal(await page.title(), "The time is up – Log in to \u2068מוסך (Garage)\u2069");
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

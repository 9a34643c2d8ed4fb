import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { BrowserContextOptions, Page } from "playwright-core";
import { openBrowser } from "./browser.ts";
import { readCode } from "./camera.ts";
import { hearStream, listenForAnswer } from "./hearing.ts";
import { type LoginStub, openLoginStub } from "./login-stub.ts";
import { holdClock, moveUntil } from "./held-clock.ts";
import { setHidden } from "./qr-page.ts";

const identity = "0x52ab…19fe";
const claimed = { kind: "claimed", digits: "07", identity, contested: false } as const;
const phone = {
  viewport: { width: 390, height: 844 },
  deviceScaleFactor: 2,
  isMobile: true,
  hasTouch: true,
};

const browser = await openBrowser();
after(() => browser.close());

/**
 * A page of the stub in a context of its own; a fault of the script or a breach of the policy fails the test. With
 * `clockMs` its clock shows this from the first moment on, and stands still unless the test moves it.
 */
async function openPage(
  stub: LoginStub,
  options: BrowserContextOptions & { clockMs?: number } = {},
): Promise<Page & AsyncDisposable> {
  const { clockMs, ...contextOptions } = options;
  const context = await browser.newContext(contextOptions);
  const page = await context.newPage();
  const faults: string[] = [];
  page.on("pageerror", (error) => faults.push(error.message));
  page.on("console", (message) => faults.push(message.text()));
  if (clockMs !== undefined) await holdClock(page, clockMs);
  await page.goto(`${stub.url}/oauth2/auth`);
  return Object.assign(page, {
    async [Symbol.asyncDispose]() {
      await context.close();
      assert.deepEqual(
        faults.filter((fault) => !/status of (502|503|409|404)|ERR_/.test(fault)),
        [],
      );
    },
  });
}

const codeOf = async (page: Page): Promise<string> =>
  (await page.locator("[data-qr]").getAttribute("data-qr")) ?? "";
const stepOf = (code: string): number => Number(/\.(\d+)\./.exec(decodeURIComponent(code))?.[1]);

/** Waits for a first event: before it, a page whose clock jumps takes its stream for dead and asks for the time. */
async function heardFirstWord(stub: LoginStub, page: Page): Promise<void> {
  stub.tell({ kind: "waiting", contested: true });
  await page.locator("[data-contested]").waitFor();
  stub.tell({ kind: "waiting" });
}

const scan = async (page: Page): Promise<string> => readCode(browser, page);

test("the page draws each step's code by itself, and a camera can read it", async () => {
  await using stub = await openLoginStub();
  await using page = await openPage(stub, { clockMs: Date.now() });
  await heardFirstWord(stub, page);
  const callsBefore = stub.calls.length;
  const step = stepOf(await codeOf(page));
  for (let rounds = 1; rounds <= 3; rounds++) {
    await page.clock.runFor(4000);
    assert.equal(stepOf(await codeOf(page)), step + rounds);
    assert.equal(await scan(page), await codeOf(page));
  }
  assert.equal(await page.locator("[data-qr]").count(), 1);
  assert.match(await page.locator("[data-left]").innerText(), /Time left: [01]:\d\d/);
  assert.deepEqual(
    stub.calls
      .slice(callsBefore)
      .filter((call) => call.includes("/status") || call.includes("POST")),
    [],
  );
});

test("a browser whose clock is wrong by an hour shows the code of the service's time", async () => {
  await using stub = await openLoginStub();
  const clockMs = Date.now() - 3_600_000;
  await using page = await openPage(stub, { clockMs });
  await heardFirstWord(stub, page);
  // After a minute without an event the page asks for the time, and would be told this.
  stub.aheadMs = 40_000;
  await page.clock.pauseAt(clockMs + 60_000);
  const steps = stepOf(await codeOf(page)) - stub.view.firstStep;
  assert.ok(steps > 5 && steps <= 16, `${steps} steps after 60 s`);
});

test("after the claim the code is gone and two digits and the identity are there", async () => {
  await using stub = await openLoginStub();
  await using page = await openPage(stub);
  assert.equal(await page.locator("[data-code]").count(), 0);
  stub.tell(claimed);
  await page.locator("[data-code]").waitFor();
  assert.equal(await page.locator("[data-code]").textContent(), "07");
  assert.equal(await page.locator("[data-qr]").count(), 0);
  assert.match(await page.locator("main").innerText(), new RegExp(identity));
  assert.match(
    (await page.getByRole("status").textContent()) ?? "",
    /Enter this number in your wallet 07/,
  );
  assert.ok(await page.locator("[data-contested]").isHidden());
  stub.tell({ ...claimed, contested: true });
  await page.getByRole("alert").waitFor();
});

test("once a wallet on the same device has the login no code is shown, and the person may start again", async () => {
  await using stub = await openLoginStub();
  await using page = await openPage(stub);
  stub.tell({ kind: "opened" });
  const panel = page.locator("[data-state]");
  await panel.getByText("This login is open in the wallet on this device").waitFor();
  assert.equal(await page.locator("[data-qr]").count(), 0);
  assert.equal(await page.getByRole("link", { name: "Open the wallet" }).count(), 1);
  await page.getByRole("button", { name: "Start again" }).waitFor();
  stub.tell({ kind: "finished" });
  await page.getByRole("heading", { name: "This login has ended" }).waitFor();
});

for (const [what, lost] of [
  ["is lost", 503],
  ["breaks off", "broken"],
] as const)
  test(`an approval takes the browser to the client, also when the first answer ${what}`, async () => {
    await using stub = await openLoginStub();
    stub.finishes = [lost, `${stub.url}/callback?code=abc`];
    await using page = await openPage(stub);
    stub.tell(claimed);
    stub.tell({ kind: "approved" });
    await page.waitForURL(`${stub.url}/callback?code=abc`);
  });

test("a page that loads after the approval goes on at once", async () => {
  await using stub = await openLoginStub({ state: { kind: "approved" } });
  await using page = await openPage(stub);
  await page.waitForURL(`${stub.url}/callback?code=1`);
});

test("a code that another tab took leaves a way back, not a blank page", async () => {
  await using stub = await openLoginStub();
  stub.finishes = [409];
  await using page = await openPage(stub);
  stub.tell({ kind: "approved" });
  await page.getByRole("heading", { name: "This login has ended" }).waitFor();
  await page.getByRole("link", { name: "Back to Alpine Books" }).click();
  await page.waitForURL(stub.view.backUrl);
});

test("a login that the service calls open goes on, whatever the page's clock says", async () => {
  for (const told of [{ kind: "waiting" }, claimed] as const) {
    await using stub = await openLoginStub();
    await using page = await openPage(stub, { clockMs: Date.now() });
    stub.tell(told);
    const answered = await listenForAnswer(page);
    for (let rounds = 0; rounds < 10; rounds += 1) {
      if (rounds === 8) await answered();
      await hearStream(page, stub);
      await page.clock.runFor(15_000);
    }
    assert.equal(await page.locator("[data-code], [data-qr]").count(), 1);
  }
});

/** How many steps the page's code is ahead of the service's clock, which stands still. */
const stepsAhead = async (page: Page, stub: LoginStub): Promise<number> =>
  stepOf(await codeOf(page)) - stub.view.firstStep;

test("a clock that is set while the page is open changes neither its code nor its end", async () => {
  for (const setMs of [3_600_000, -3_600_000]) {
    await using stub = await openLoginStub();
    const clockMs = Date.now();
    await using page = await openPage(stub, { clockMs });
    await heardFirstWord(stub, page);
    const answered = await listenForAnswer(page);
    await page.clock.setSystemTime(clockMs + setMs);
    await page.clock.runFor(1000);
    await answered();
    await page.clock.runFor(8000);
    const ahead = await stepsAhead(page, stub);
    assert.ok(ahead >= 1 && ahead <= 3, `${ahead} steps in 8 s`);
    assert.match(await page.locator("[data-left]").innerText(), /Time left: 1:[45]\d/);
  }
});

test("a page that slept with its machine shows the code of the service's time again", async () => {
  await using stub = await openLoginStub();
  const clockMs = Date.now();
  await using page = await openPage(stub, { clockMs });
  await heardFirstWord(stub, page);
  const answered = await listenForAnswer(page);
  // While a machine sleeps, the monotonic clock of its pages may stand still.
  stub.aheadMs = 60_000;
  await page.clock.setSystemTime(clockMs + 60_000);
  await page.clock.runFor(1000);
  await answered();
  await page.clock.runFor(1000);
  const ahead = await stepsAhead(page, stub);
  assert.ok(ahead >= 15 && ahead <= 16, `${ahead} steps after 61 s`);
});

test("where streams fail the page asks by long poll, and sees claim, second wallet and approval", async () => {
  await using stub = await openLoginStub();
  stub.stream = "refused";
  await using page = await openPage(stub);
  await stub.busy();
  stub.tell(claimed);
  await page.locator("[data-code]").waitFor();
  assert.ok(stub.calls.some((call) => call.endsWith("/status?after=waiting")));
  stub.tell({ ...claimed, contested: true });
  await page.getByRole("alert").waitFor();
  stub.tell({ kind: "approved" });
  await page.waitForURL(`${stub.url}/callback?code=1`);
});

test("where a proxy holds the stream back the page asks by long poll within seconds", async () => {
  for (const [stream, silenceMs] of [
    ["held", 3000],
    ["held after headers", 3000],
    ["held after a word", 20_000],
  ] as const) {
    await using stub = await openLoginStub();
    stub.stream = stream;
    await using page = await openPage(stub, { clockMs: Date.now() });
    await page.clock.runFor(silenceMs);
    await moveUntil(page, "a long poll", () =>
      stub.calls.some((call) => call.endsWith("/status?after=waiting")),
    );
    // Streams that are held back do not count.
    await stub.busy();
    stub.tell(claimed);
    await page.locator("[data-code]").waitFor();
  }
});

test("a proxy that answers for a service that is away ends no login, and keeps no approved one back", async () => {
  await using stub = await openLoginStub();
  stub.refusal = { status: 404 };
  await using page = await openPage(stub);
  await page.locator("[data-offline]").waitFor();
  assert.equal(await page.locator("[data-qr]").count(), 1);
  stub.finishes = [404, `${stub.url}/callback?code=abc`];
  stub.tell({ kind: "approved" });
  stub.refusal = null;
  await page.waitForURL(`${stub.url}/callback?code=abc`);
});

test("a connection that is back is no longer called lost, though nothing has happened meanwhile", async () => {
  await using stub = await openLoginStub();
  stub.refusal = { status: 502 };
  await using page = await openPage(stub);
  const notice = page.locator("[data-offline]");
  await notice.waitFor();
  const back = await page.locator(".back").boundingBox();
  const gap = ((await notice.boundingBox())?.y ?? 0) - (back?.y ?? 0) - (back?.height ?? 0);
  assert.ok(gap >= 12, `${gap} pixels below the way back`);
  stub.refusal = null;
  await notice.waitFor({ state: "hidden" });
});

test("a screen reader hears that the connection is lost, and no more of it once it is back", async () => {
  await using stub = await openLoginStub();
  stub.refusal = { status: 502 };
  await using page = await openPage(stub);
  const heard = page.getByRole("status");
  await heard.filter({ hasText: "No connection. Trying again…" }).waitFor();
  stub.refusal = null;
  await page.locator("[data-offline]").waitFor({ state: "hidden" });
  assert.equal(await heard.textContent(), "");
});

test("a login whose client is gone has ended at once", async () => {
  await using stub = await openLoginStub();
  stub.refusal = { status: 409, reason: "login_over" };
  await using page = await openPage(stub);
  await page.getByRole("heading", { name: "This login has ended" }).waitFor();
});

test("a browser that keeps no cookie is told so, unless the login's time is up anyway", async () => {
  for (const [expiresInSeconds, text] of [
    [120, /allow them for this page/],
    [-60, /its time is up/],
  ] as const) {
    const expiresAt = Math.floor(Date.now() / 1000) + expiresInSeconds;
    await using stub = await openLoginStub({ expiresAt });
    stub.refusal = { status: 404, reason: "login_not_found" };
    await using page = await openPage(stub);
    await page.locator("[data-state]").getByText(text).waitFor();
    await page.getByRole("link", { name: "Back to Alpine Books" }).waitFor();
  }
});

test("a stream that says it lives is never given up", async () => {
  await using stub = await openLoginStub();
  await using page = await openPage(stub, { clockMs: Date.now() });
  for (let rounds = 0; rounds < 4; rounds += 1) {
    await hearStream(page, stub);
    await page.clock.runFor(15_000);
  }
  assert.deepEqual(
    stub.calls.filter((call) => call.includes("/status")),
    [],
  );
});

test("a page out of view holds no connection, and catches up when it is seen again", async () => {
  for (const stream of ["open", "refused"] as const) {
    await using stub = await openLoginStub();
    stub.stream = stream;
    await using page = await openPage(stub);
    await page.locator("[data-left]").waitFor();
    await stub.busy();
    await setHidden(page, true);
    await stub.idle();
    stub.tell(claimed);
    assert.equal(await page.locator("[data-code]").count(), 0);
    await setHidden(page, false);
    await page.locator("[data-code]").waitFor();
  }
});

test("a page that comes into view after its login was finished in another tab blames no cookie", async () => {
  for (const stream of ["open", "refused"] as const) {
    await using stub = await openLoginStub();
    stub.stream = stream;
    await using page = await openPage(stub);
    await stub.busy();
    if (stream === "open") await hearStream(page, stub);
    await setHidden(page, true);
    await stub.idle();
    // The cookie of a finished login goes after a minute.
    stub.refusal = { status: 404, reason: "login_not_found" };
    await setHidden(page, false);
    await page
      .locator("[data-state]")
      .getByText("It was finished, perhaps in another tab")
      .waitFor();
  }
});

const top = async (page: Page, selector: string): Promise<number> =>
  (await page.locator(selector).boundingBox())?.y ?? Number.NaN;

test("on a phone the wallet's button comes before the code, on a desk after it", async () => {
  await using stub = await openLoginStub();
  await using small = await openPage(stub, phone);
  assert.ok((await top(small, "[data-same-device]")) < (await top(small, "[data-qr]")));
  await using large = await openPage(stub);
  assert.ok((await top(large, "[data-same-device]")) > (await top(large, "[data-qr]")));
});

const longName = "Donaudampfschifffahrtsgesellschaft".repeat(2);
const stackedName = `A${"\u0301\u0332\u0488".repeat(30)}lpine`;

for (const clientName of [longName, stackedName])
  test(`nothing is cut off on 320 pixels with a name of ${clientName.length} characters`, async () => {
    await using stub = await openLoginStub({
      clientName,
      clientDomain: null,
      locale: "de",
    });
    await using page = await openPage(stub, { viewport: { width: 320, height: 640 } });
    for (const told of [
      null,
      claimed,
      { kind: "failed", failure: "expired", canRestart: true } as const,
    ]) {
      if (told !== null) stub.tell(told);
      if (told !== null) await page.locator("[data-qr]").waitFor({ state: "detached" });
      assert.ok(
        await page.evaluate<boolean>("document.documentElement.scrollWidth <= innerWidth"),
        told?.kind,
      );
    }
  });

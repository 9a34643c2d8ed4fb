import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { until } from "../patience.ts";

/**
 * Stops a page's clock, from its next load on: only the test moves it, so a machine that stalls changes nothing.
 * Playwright pauses a clock that runs at a later time, which must not have passed by then; hence the hour before.
 */
export async function holdClock(page: Page, atMs = Date.now()): Promise<void> {
  await page.clock.install({ time: atMs - 3_600_000 });
  await page.clock.pauseAt(atMs);
}

/** By the page's clock: longer than a login and its approval are kept. */
const secondsMax = 150;

/** Moves the clock until the page has come so far: what it asked may be answered late, and then it asks again later. */
export async function moveUntil(
  page: Page,
  what: string,
  look: () => boolean | Promise<boolean>,
): Promise<void> {
  let seconds = 0;
  await until(what, async () => {
    if (await look()) return true;
    seconds += 1;
    assert.ok(seconds <= secondsMax, `${what} is not there after ${secondsMax} s`);
    await page.clock.runFor(1000);
    return null;
  });
}

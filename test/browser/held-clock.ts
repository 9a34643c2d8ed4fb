import type { Page } from "playwright-core";

/**
 * Stops a page's clock, from its next load on: only the test moves it, so a machine that stalls changes nothing.
 * Playwright pauses a clock that runs at a later time, which must not have passed by then; hence the hour before.
 */
export async function holdClock(page: Page, atMs = Date.now()): Promise<void> {
  await page.clock.install({ time: atMs - 3_600_000 });
  await page.clock.pauseAt(atMs);
}

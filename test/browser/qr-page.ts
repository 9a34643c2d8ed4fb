// The real QR page, read by its stable hooks (decisions section 2, the QR page, rule 9).
import assert from "node:assert/strict";
import type { Page } from "playwright-core";
import { until } from "../patience.ts";
import { approve, claim, type Claimed, type Identity, scan } from "../raw-wallet.ts";

/** Text of the code that the page shows at this moment. */
export async function readQr(page: Page): Promise<string> {
  return (await page.locator("[data-qr]").getAttribute("data-qr")) ?? "";
}

/** The two digits, as soon as a wallet has claimed the login. */
export async function readDigits(page: Page): Promise<string> {
  return page.locator("[data-code]").innerText();
}

export async function readSameDeviceLink(page: Page): Promise<string> {
  return (await page.locator("a[data-same-device]").getAttribute("href")) ?? "";
}

/** What a browser does when the person turns to another tab, or back to this one. */
export async function setHidden(page: Page, isHidden: boolean): Promise<void> {
  await page.evaluate(`Object.defineProperty(document, "hidden", { configurable: true, value: ${isHidden} });
    document.dispatchEvent(new Event("visibilitychange"));`);
}

/** Scans until a code arrives in time: each lives for seconds, and a machine may stall as long. */
export async function claimOnPage(page: Page, identity: Identity): Promise<Claimed> {
  return until("a code is scanned in time", async () => {
    const scanned = scan(await readQr(page));
    return claim(scanned, identity).catch((error: unknown) => {
      if (error instanceof Error && error.message.includes("code_expired")) return null;
      throw error;
    });
  });
}

/** What a person with a wallet does before the page: scan, read the number, approve. */
export async function approveOnPage(page: Page, identity: Identity): Promise<Claimed> {
  const claimed = await claimOnPage(page, identity);
  const response = await approve(claimed, await readDigits(page));
  assert.equal(response.status, 200, await response.text());
  return claimed;
}

import assert from "node:assert/strict";
import { test } from "node:test";
import { openBrowser } from "./browser.ts";

test("the browser draws text with the fonts that came with it", async () => {
  await using browser = await openBrowser();
  const page = await browser.newPage();
  await page.setContent(
    `<p id="wide">WWWW</p><p id="narrow">iiii</p><style>p{display:inline-block}</style>`,
  );
  const widths = await page.evaluate<[number, number]>(
    `["wide", "narrow"].map((id) => document.getElementById(id).offsetWidth)`,
  );
  assert.ok(widths[0] > 2 * widths[1], `${widths.join(" and ")} pixels`);
});

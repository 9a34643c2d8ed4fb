import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const source = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/**
 * What axe-core finds wrong with the page as it is now, as `rule: element`. A context with `bypassCSP` lets axe into
 * pages whose policy runs no foreign script.
 */
export async function violationsOf(page: Page): Promise<string[]> {
  // The text of a page may be there before its style sheet.
  await page.waitForLoadState();
  // Loaded once into a page that is checked in several states: that is two thirds of the work.
  if (!(await page.evaluate<boolean>("'axe' in window"))) await page.evaluate(source);
  return page.evaluate<string[]>(
    `axe.run(document).then(({ violations }) => violations.map(({ id, nodes }) => id + ": " + nodes.map(({ html }) => html).join(" ")))`,
  );
}

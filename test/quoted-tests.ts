// Finds the tests that the documentation or a table of promises names, so that none of them is missing.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A test, by the end of its file's path and a part of its title. */
export interface QuotedTest {
  readonly file: string;
  readonly title: string;
}

const root = join(import.meta.dirname, "..");

let known: readonly { readonly path: string; readonly text: string }[] | null = null;

/** Every file of tests, read once. */
function files() {
  known ??= globSync(
    "{apps,contracts/test,demo,packages,service,test,tools}/**/*.{test.ts,t.sol}",
    {
      cwd: root,
      exclude: ["**/node_modules/**"],
    },
  ).map((path) => ({ path: `/${path}`, text: readFileSync(join(root, path), "utf8") }));
  return known;
}

/** The text of the files whose path ends so. */
export function textsOf(file: string): string {
  const named = files().filter(({ path }) => path.endsWith(`/${file}`));
  return named.map(({ text }) => text).join("\n");
}

/** The quotes whose test does not exist. */
export function missingTests<T extends QuotedTest>(quotes: readonly T[]): T[] {
  return quotes.filter(({ file, title }) => !textsOf(file).includes(title));
}

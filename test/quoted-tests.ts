// Tests that are named elsewhere, in the documentation or in a table of what has to be shown: they have to be there.
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A test by its file, as much of its path as names it, and what stands in its title. */
export interface QuotedTest {
  readonly file: string;
  readonly title: string;
}

const root = join(import.meta.dirname, "..");

let known: readonly { readonly path: string; readonly text: string }[] | null = null;

/** Every file of tests, read once. */
function files() {
  known ??= globSync("{packages,service,test,contracts/test}/**/*.{test.ts,t.sol}", {
    cwd: root,
    exclude: ["**/node_modules/**"],
  }).map((path) => ({ path: `/${path}`, text: readFileSync(join(root, path), "utf8") }));
  return known;
}

/** What stands in the files that are named so. */
export function textsOf(file: string): string {
  const named = files().filter(({ path }) => path.endsWith(`/${file}`));
  return named.map(({ text }) => text).join("\n");
}

/** Those that are not there. */
export function missingTests<T extends QuotedTest>(quotes: readonly T[]): T[] {
  return quotes.filter(({ file, title }) => !textsOf(file).includes(title));
}

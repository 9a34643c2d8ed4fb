// Tests that are named elsewhere, in the documentation or in a table of what has to be shown: they have to be there.
import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

/** A test by its file, as much of its path as names it, and what stands in its title. */
export interface QuotedTest {
  readonly file: string;
  readonly title: string;
}

const root = join(dirname(fileURLToPath(import.meta.url)), "..");

/** Those that are not there. */
export function missingTests<T extends QuotedTest>(quotes: readonly T[]): T[] {
  const files = globSync("{packages,service,test,contracts/test}/**/*.{test.ts,t.sol}", {
    cwd: root,
    exclude: ["**/node_modules/**"],
  });
  const texts = new Map<string, string>();
  const textOf = (file: string): string => {
    const text = texts.get(file) ?? readFileSync(join(root, file), "utf8");
    texts.set(file, text);
    return text;
  };
  return quotes.filter(
    ({ file, title }) =>
      !files.some((each) => `/${each}`.endsWith(`/${file}`) && textOf(each).includes(title)),
  );
}

// The compiler of node_modules. It takes two seconds for these contracts, so what it said to an input is kept: the same
// version says the same again.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import about from "solc/package.json" with { type: "json" };

/** Of the package, which has that of its compiler. */
export const { version } = about;

const cache = join(import.meta.dirname, "../node_modules/.cache/forge/solc");

/**
 * @param input standard JSON with the text of every source
 * @returns standard JSON
 */
export async function compile(input: string): Promise<string> {
  const path = join(cache, createHash("sha256").update(`${version}\n${input}`).digest("hex"));
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== "ENOENT") throw error;
  }
  // Takes half a second to load.
  const { default: solc } = await import("solc");
  const output = String(solc.compile(input));
  mkdirSync(cache, { recursive: true });
  // Whole or not at all: others may look for it meanwhile.
  const begun = `${path}.${process.pid}`;
  writeFileSync(begun, output);
  renameSync(begun, path);
  return output;
}

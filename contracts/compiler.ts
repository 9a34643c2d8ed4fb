// The compiler in node_modules. It takes two seconds for these contracts, so its outputs are cached by version and
// input.
import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import about from "solc/package.json" with { type: "json" };

/** The version of the package, which is that of its compiler. */
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
  // Imported only here because loading it takes half a second.
  const { default: solc } = await import("solc");
  const output = String(solc.compile(input));
  mkdirSync(cache, { recursive: true });
  // Renamed when complete, since other processes may read it meanwhile.
  const begun = `${path}.${process.pid}`;
  writeFileSync(begun, output);
  renameSync(begun, path);
  return output;
}

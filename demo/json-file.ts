// The demo's own files: only the user who started it can read them.
import { existsSync, readFileSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { ConfigError } from "@svc/service/config";
import { flushDirectory, writeFlushed } from "@svc/service/durable-file";

/**
 * @returns null if there is no such file
 * @throws {ConfigError} if it holds something else
 */
export function readJson(path: string): unknown {
  if (!existsSync(path)) return null;
  const text = readFileSync(path, "utf8");
  try {
    return JSON.parse(text);
  } catch {
    throw new ConfigError(
      `${path} is damaged: bring it back from a copy, or move DATA_DIR away to begin anew`,
    );
  }
}

/**
 * Writes under another name, flushes to the disk and then renames, so that a start that ends by a kill or a power cut
 * leaves a complete file or none. The next write replaces what is left under the other name.
 */
export function writeJson(path: string, value: unknown): void {
  const draft = `${path}.new`;
  writeFlushed(draft, `${JSON.stringify(value, null, 2)}\n`, "w");
  renameSync(draft, path);
  flushDirectory(dirname(path));
}

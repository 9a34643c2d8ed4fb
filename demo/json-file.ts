// The demo's own files: only the user who started it can read them.
import { existsSync, readFileSync, renameSync } from "node:fs";
import { dirname } from "node:path";
import { flushDirectory, writeFlushed } from "@svc/service/durable-file";

/** @returns null if there is no such file */
export function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/**
 * Written under another name, flushed to the disk and then renamed, so that a start that is killed, or that a power cut
 * ends, leaves a complete file or none. The next write takes the place of what it left under the other name.
 */
export function writeJson(path: string, value: unknown): void {
  const draft = `${path}.new`;
  writeFlushed(draft, `${JSON.stringify(value, null, 2)}\n`, "w");
  renameSync(draft, path);
  flushDirectory(dirname(path));
}

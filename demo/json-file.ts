// The demo's own files: only the user who started it can read them.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/** @returns null if there is no such file */
export function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** Written under another name and then renamed, so that a start that is killed leaves a complete file or none. */
export function writeJson(path: string, value: unknown): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

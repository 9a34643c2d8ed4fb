// The demo's own files: only the user who started it can read them.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";

/** @returns null where there is no such file */
export function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** Written aside and renamed, so that a killed start leaves a whole file or none. */
export function writeJson(path: string, value: unknown): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}

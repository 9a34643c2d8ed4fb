import { chmodSync, mkdirSync } from "node:fs";
import { dirname, resolve } from "node:path";

/**
 * Makes the data directory if it does not exist. Started by root, the embedded database runs as another user, who has to
 * pass through it and through the parents that are made here, whatever root's umask is; every secret in it has mode 0600.
 */
export function makeDataDirectory(directory: string): void {
  const path = resolve(directory);
  const first = mkdirSync(path, { recursive: true, mode: 0o711 });
  if (first === undefined || process.getuid?.() !== 0) return;
  for (let each = path; each.length >= first.length; each = dirname(each)) chmodSync(each, 0o711);
}

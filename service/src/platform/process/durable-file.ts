import { closeSync, fsyncSync, openSync, writeFileSync } from "node:fs";

/**
 * Writes a file of mode 0600 whose content survives a power cut: without that, a file that is renamed or linked into place
 * may be there afterwards and be empty. Its name survives once {@link flushDirectory} has been called too.
 *
 * @param flag `wx` for a file that must not exist
 */
export function writeFlushed(path: string, text: string, flag: "w" | "wx"): void {
  const file = openSync(path, flag, 0o600);
  try {
    writeFileSync(file, text);
    fsyncSync(file);
  } finally {
    closeSync(file);
  }
}

/** Flushes the names in a directory to the disk. */
export function flushDirectory(path: string): void {
  const directory = openSync(path, "r");
  try {
    fsyncSync(directory);
  } finally {
    closeSync(directory);
  }
}

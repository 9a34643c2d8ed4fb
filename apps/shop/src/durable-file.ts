import { open, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";

/** Writes a new file beside the old one, flushes it to the disk, and only then replaces the old one. Mode 0600. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  await flushDirectoryOf(path);
}

/** Removes a file, if it is there, so that it stays removed after a power cut. */
export async function removeDurably(path: string): Promise<void> {
  await rm(path, { force: true });
  await flushDirectoryOf(path);
}

async function flushDirectoryOf(path: string): Promise<void> {
  const parent = await open(dirname(path), "r");
  try {
    await parent.sync();
  } finally {
    await parent.close();
  }
}

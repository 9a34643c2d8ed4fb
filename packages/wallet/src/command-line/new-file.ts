import { randomUUID } from "node:crypto";
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a new file that only its owner can read, flushed to the disk: completely or not at all, whenever the process
 * ends.
 *
 * @throws as Node does; with the code EEXIST if the file exists
 */
export async function writeNewFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeDraft(draft, text);
    // A link, unlike a rename, fails if the file exists already.
    await link(draft, path);
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

/** Writes a file under a name that nobody else uses, flushed to the disk. */
export async function writeDraft(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await rm(path, { force: true });
    throw error;
  } finally {
    await file.close();
  }
}

/** Flushes a folder, so that entries that were added or removed survive a crash. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

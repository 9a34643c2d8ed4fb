import { randomUUID } from "node:crypto";
import { link, open, rm } from "node:fs/promises";
import { dirname } from "node:path";

/**
 * Writes a new file for its owner alone, onto the disk: whole or not at all, whenever the process ends.
 *
 * @throws as Node does; with the code EEXIST where there is a file
 */
export async function writeNewFile(path: string, text: string): Promise<void> {
  const draft = `${path}.${randomUUID()}`;
  try {
    await writeDraft(draft, text);
    // A link, unlike a rename, fails where a file stands already.
    await link(draft, path);
    await syncFolder(dirname(path));
  } finally {
    await rm(draft, { force: true });
  }
}

/** Writes a file under a name that nobody else has, onto the disk. */
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

/** Names that were given and taken in a folder hold from here on. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

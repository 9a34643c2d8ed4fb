import { open, rm } from "node:fs/promises";

/**
 * Writes a new file for its owner alone, onto the disk. One that cannot be written whole, as the disk is full, is removed
 * again: nobody takes it for what it was to be, and its name is free.
 *
 * @throws as Node does; with the code EEXIST where there is a file
 */
export async function writeNewFile(path: string, text: string): Promise<void> {
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

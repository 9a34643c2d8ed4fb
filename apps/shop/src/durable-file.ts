import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";

/**
 * Reads the JSON files of a directory, which is created if it is missing. Only the shop's own system user can read it,
 * because the files hold what people and companies released.
 */
export async function openDirectory<T>(directory: string): Promise<T[]> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const values: T[] = [];
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    // A write that was interrupted; its event will be sent again.
    if (name.endsWith(".new")) await rm(path);
    if (name.endsWith(".json")) values.push(JSON.parse(await readFile(path, "utf8")) as T);
  }
  return values;
}

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

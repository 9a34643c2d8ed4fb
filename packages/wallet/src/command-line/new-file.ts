import { randomUUID } from "node:crypto";
import { link, open, readdir, rename, rm } from "node:fs/promises";
import { basename, dirname, join } from "node:path";

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
    await putInPlace(draft, path);
    await undoUnless(path, syncFolder(dirname(path)));
    await dropOtherDrafts(path);
  } catch (error) {
    if (isOfCode(error, "EEXIST")) await dropOtherDrafts(path);
    throw error;
  } finally {
    await dropDraft(draft);
  }
}

/** Once a file exists, other drafts of it are useless: their call was killed, or will be refused. */
async function dropOtherDrafts(path: string): Promise<void> {
  const names = await readdir(dirname(path)).catch(() => []);
  const prefix = `${basename(path)}.`;
  for (const name of names)
    if (name.startsWith(prefix) && uuid.test(name.slice(prefix.length)))
      await dropDraft(join(dirname(path), name));
}

const uuid = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

const isOfCode = (error: unknown, code: string): boolean =>
  error instanceof Error && "code" in error && error.code === code;

/** The errors of a file system without hard links, such as that of a USB stick. */
const noLinkCodes = new Set(["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS"]);

async function putInPlace(draft: string, path: string): Promise<void> {
  try {
    // A link, unlike a rename, fails if the file exists already.
    await link(draft, path);
  } catch (error) {
    const isNoLink =
      error instanceof Error && "code" in error && noLinkCodes.has(String(error.code));
    if (!isNoLink) throw error;
    // An empty file takes the name; this fails with EEXIST if the name is taken.
    await (await open(path, "wx", 0o600)).close();
    await undoUnless(path, rename(draft, path));
  }
}

/** Removes the file again if it cannot be completed. */
async function undoUnless(path: string, completed: Promise<void>): Promise<void> {
  try {
    await completed;
  } catch (error) {
    await dropDraft(path);
    throw error;
  }
}

/** Removes a file. If that fails, it is ignored: the caller's own result or error counts. */
export async function dropDraft(path: string): Promise<void> {
  await rm(path, { force: true }).catch(() => undefined);
}

/** Writes a file under a name that nobody else uses, flushed to the disk. */
export async function writeDraft(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } catch (error) {
    await dropDraft(path);
    throw nameFile(error, path);
  } finally {
    await file.close();
  }
}

/** Flushes a folder, so that entries that were added or removed survive a crash. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, "r");
  try {
    await handle.sync();
  } catch (error) {
    throw nameFile(error, folder);
  } finally {
    await handle.close();
  }
}

/** The errors of a file handle do not name the file. */
function nameFile(error: unknown, path: string): unknown {
  if (error instanceof Error) error.message += ` '${path}'`;
  return error;
}

import { randomUUID } from "node:crypto";
import { chmod, link, mkdir, readdir, readFile, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { changedMeanwhile, type StorageKey, type WalletStorage } from "../storage.ts";
import { dropDraft, syncFolder, writeDraft } from "./new-file.ts";

/**
 * Keeps each value in a file of its own, `<directory>/<key>.json`: mode 0600 in directories of mode 0700, written to a
 * draft and then renamed or linked, so that a file is complete or absent even if a process is killed or others run at
 * the same time. Writes are flushed to the disk: a payment is sent only after the record that prevents a second one.
 */
export function fileStorage(directory: string): WalletStorage {
  const pathOf = (key: StorageKey): string => {
    if (!/^[a-z]+\/[a-z0-9_-]{1,64}$/.test(key)) throw new TypeError(`not a storage key: ${key}`);
    return join(directory, `${key}.json`);
  };
  const get = async (key: StorageKey): Promise<string | null> =>
    unless("ENOENT", null, readFile(pathOf(key), "utf8"));
  return {
    get,
    async put(key, text, before) {
      const path = pathOf(key);
      const draft = await addDraft(directory, path, text);
      try {
        // In this order, at most one of two calls that replace the same value at once still finds its draft.
        if (before !== undefined) await removeDrafts(path, draft);
        if (before !== undefined && (await get(key)) !== before) throw changedMeanwhile(key);
        await putInPlace(key, rename(draft, path));
      } finally {
        await dropDraft(draft);
      }
      if (isIdentity(key)) await removeDrafts(path);
      await confirm(key, path);
    },
    async add(key, text) {
      const path = pathOf(key);
      const draft = await addDraft(directory, path, text);
      try {
        // A link, unlike a rename, fails if the file exists already.
        const added = await unless(
          "EEXIST",
          false,
          putInPlace(key, link(draft, path)).then(() => true),
        );
        await confirm(key, path);
        return added ? text : ((await get(key)) ?? text);
      } finally {
        await dropDraft(draft);
      }
    },
    async remove(key) {
      const path = pathOf(key);
      await rm(path, { force: true });
      if (isIdentity(key)) await removeDrafts(path);
      await unless("ENOENT", undefined, syncFolder(dirname(path)));
    },
    async list(folder) {
      const names = await unless("ENOENT", [], readdir(join(directory, folder)));
      return names
        .filter((name) => /^[a-z0-9_-]+\.json$/.test(name))
        .map((name) => `${folder}/${name.slice(0, -".json".length)}` as const);
    },
  };
}

/**
 * Drafts of identities are removed together with their value, because an earlier passphrase may open them. Drafts of
 * other values are left alone, because they may belong to a process that is writing right now.
 */
const isIdentity = (key: StorageKey): boolean => key.startsWith("identity/");

async function removeDrafts(path: string, own?: string): Promise<void> {
  for (const draft of await listDrafts(dirname(path)))
    if (draft.startsWith(`${path}.`) && draft !== own) await rm(draft, { force: true });
}

/** @throws {WalletRefusal} if the draft is gone: another call has changed the same value, and removed its drafts */
async function putInPlace(key: StorageKey, work: Promise<void>): Promise<void> {
  const isDone = await unless(
    "ENOENT",
    false,
    work.then(() => true),
  );
  if (!isDone) throw changedMeanwhile(key);
}

/** Flushes the directory. The error of a failure says that the new value is written: the earlier one is gone. */
async function confirm(key: StorageKey, path: string): Promise<void> {
  try {
    await syncFolder(dirname(path));
  } catch (cause) {
    const fault = cause instanceof Error ? cause.message : "";
    throw new Error(`${key} is written, and may be lost in a power cut: ${fault}`, { cause });
  }
}

/** A draft that is older than this was left by a process that was killed. */
const draftMsMax = 3_600_000;

async function addDraft(directory: string, path: string, text: string): Promise<string> {
  const folder = dirname(path);
  await makeFolder(directory, folder);
  await removeOldDrafts(folder);
  const draft = `${path}.${randomUUID()}`;
  await writeDraft(draft, text);
  return draft;
}

async function makeFolder(directory: string, folder: string): Promise<void> {
  const parent = dirname(directory);
  // The data directory may be the service's, whose database runs under another user that has to pass through it.
  const outer = await mkdir(parent, { recursive: true, mode: 0o711 });
  const made = await mkdir(folder, { recursive: true, mode: 0o700 });
  await chmod(directory, 0o700);
  await syncAbove(folder, made);
  await syncAbove(parent, outer);
}

/**
 * Flushes the folders that got a new entry: the parents of `made`, up to that of `first`, the outermost folder that was
 * created. The wallet may not have the right to read those above the data directory.
 */
async function syncAbove(made: string, first: string | undefined): Promise<void> {
  if (first === undefined) return;
  for (let each = made; each.length >= first.length; each = dirname(each))
    await unless("EACCES", undefined, syncFolder(dirname(each)));
}

async function removeOldDrafts(folder: string): Promise<void> {
  for (const draft of await listDrafts(folder)) {
    const found = await unless("ENOENT", null, stat(draft));
    if (found !== null && found.mtimeMs + draftMsMax < Date.now()) await rm(draft, { force: true });
  }
}

async function listDrafts(folder: string): Promise<string[]> {
  const names = await unless("ENOENT", [], readdir(folder));
  return names
    .filter((name) => /\.json\.[0-9a-f-]{36}$/.test(name))
    .map((name) => join(folder, name));
}

async function unless<T, F>(code: string, fallback: F, work: Promise<T>): Promise<T | F> {
  try {
    return await work;
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === code) return fallback;
    throw error;
  }
}

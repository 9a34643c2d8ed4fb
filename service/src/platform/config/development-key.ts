import { randomBytes, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { flushDirectory, writeFlushed } from "../process/durable-file.ts";

const keyBytes = 32;
const keyFile = "master.key";

/**
 * The master key of an installation in the profile `dev`: 64 hex digits in `master.key`, mode 0600, made at the first
 * start. It gives no protection against somebody who can read the directory; `production` refuses to start without
 * MASTER_KEY.
 *
 * @throws Error when the directory cannot be written, or the file holds something else
 */
export function readOrMakeDevelopmentKey(directory: string): string {
  const path = join(directory, keyFile);
  const known = readKey(path) ?? makeKey(directory, path);
  removeDrafts(directory);
  return known;
}

/**
 * Flushed to the disk before anything is sealed with it: a database that survives a power cut is of no use without its
 * key.
 */
function makeKey(directory: string, path: string): string {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // Written to a draft and linked into place: processes that start at the same time find a complete key or none, and
  // one of them wins.
  const draft = `${path}.${randomUUID()}`;
  writeFlushed(draft, `${randomBytes(keyBytes).toString("hex")}\n`, "wx");
  try {
    linkSync(draft, path);
  } catch (error) {
    // ENOENT: another process removed our draft, so it has won as well.
    if (!isCode(error, "EEXIST") && !isCode(error, "ENOENT")) throw error;
  }
  flushDirectory(directory);
  const made = readKey(path);
  if (made === null) throw new Error(`${path} vanished while it was made`);
  return made;
}

/**
 * Removes the drafts of starts that were killed: other keys, or copies of this one. A draft that cannot be removed
 * fails no start.
 */
function removeDrafts(directory: string): void {
  for (const name of readdirSync(directory)) {
    if (!/^master\.key\.[0-9a-f-]{36}$/.test(name)) continue;
    try {
      rmSync(join(directory, name), { force: true });
    } catch {
      // In a read-only directory, for instance; a later start may remove it.
    }
  }
}

/**
 * Whether one of the keys is the development key of this directory, which anyone who could ever read it may still know.
 */
export function isDevelopmentKey(directory: string, keys: readonly string[]): boolean {
  const known = readKey(join(directory, keyFile));
  return known !== null && keys.includes(known);
}

function readKey(path: string): string | null {
  let text: string;
  try {
    text = readFileSync(path, "utf8").trim();
  } catch (error) {
    if (isCode(error, "ENOENT")) return null;
    throw error;
  }
  if (!/^[0-9a-f]{64}$/.test(text)) throw new Error(`${path} does not hold 64 hex digits`);
  return text;
}

function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}

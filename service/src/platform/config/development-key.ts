import { randomBytes, randomUUID } from "node:crypto";
import { linkSync, mkdirSync, readFileSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";

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
  const known = readKey(path);
  if (known !== null) return known;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  // Written to a draft and linked into place: processes that start at the same time find a complete key or none, and
  // one of them wins.
  const draft = join(directory, `${keyFile}.${randomUUID()}`);
  writeFileSync(draft, `${randomBytes(keyBytes).toString("hex")}\n`, { flag: "wx", mode: 0o600 });
  try {
    linkSync(draft, path);
  } catch (error) {
    if (!isCode(error, "EEXIST")) throw error;
  } finally {
    unlinkSync(draft);
  }
  const made = readKey(path);
  if (made === null) throw new Error(`${path} vanished while it was made`);
  return made;
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

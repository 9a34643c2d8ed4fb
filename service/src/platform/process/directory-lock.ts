import { accessSync, chmodSync, constants } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** The sole right to use a directory, until released or until this process ends. */
export interface DirectoryLock {
  release(): void;
}

/** The lock cannot be taken, as on a full disk; the message says why. */
class DirectoryLockFault extends Error {
  override name = "DirectoryLockFault";
}

/** SQLITE_BUSY: somebody else holds the file lock. */
const busy = 5;

/**
 * Takes the sole right to use `directory`, or returns null when a live process (this one included) has it.
 *
 * The kernel holds the lock, taken through SQLite on an empty file named `lock`, and drops it with the process: there
 * is no stale lock after a crash and no process id to misread in a container.
 */
export function lockDirectory(directory: string): DirectoryLock | null {
  // SQLite would only say that it cannot open a file.
  accessSync(directory, constants.W_OK);
  const file = join(directory, "lock");
  let database: DatabaseSync | undefined;
  try {
    const opened = new DatabaseSync(file, { timeout: 0 });
    database = opened;
    chmodSync(file, 0o600);
    opened.exec("begin exclusive");
    return { release: () => opened.close() };
  } catch (error) {
    database?.close();
    if (!(error instanceof Error && "errcode" in error)) throw error;
    if (error.errcode === busy) return null;
    throw new DirectoryLockFault(`${file} cannot be locked: ${error.message}`, { cause: error });
  }
}

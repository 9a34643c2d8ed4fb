import { execFile } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  open,
  readFile,
  readdir,
  realpath,
  rename,
  rm,
  rmdir,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { sha256 } from "../cryptography/sha256.ts";
import type { Account } from "../process/bound-process.ts";

/**
 * Where an embedded server stores everything, and the user that it runs as (`null`: the user of this process, who is
 * not root).
 */
export interface Home {
  readonly directory: string;
  readonly data: string;
  readonly account: Account | null;
}

/**
 * Something about this machine, its users or its directories prevents the server from running; the message says what.
 */
export class EmbeddedPostgresFault extends Error {
  override name = "EmbeddedPostgresFault";
}

const run = promisify(execFile);

/** Unprivileged users with a passwd entry, as initdb demands one; the first that exists is taken. */
const accountNames = ["postgres", "_postgres", "nobody"];

/** Homes of servers whose own directory the unprivileged user cannot reach. */
const fallbackParent = "/var/lib/svc-embedded";

/** `sun_path` holds 104 bytes on macOS and 108 on Linux, the closing zero included. */
const socketPathBytesMax = 103;

/** A server writes its process id right after it has made its lock file. */
const pidTriesMax = 10;
const pidEveryMs = 50;

/** The port only names the socket file; nothing listens on TCP. */
export const socketPort = 5432;

/**
 * Creates the directory that the caller named: with mode 0700 for a plain user, or, as root, so that the server's user
 * can pass through. Returns its real path.
 */
export async function createDirectory(directory: string): Promise<string> {
  const path = resolve(directory);
  if (process.getuid?.() === 0) {
    await createPassable(path);
  } else {
    await mkdir(path, { recursive: true, mode: 0o700 });
    await chmod(path, 0o700);
  }
  return realpath(path);
}

/**
 * Decides where the server kept under `directory` has its home. For a plain user that is `directory` itself.
 * PostgreSQL refuses to run as root, so as root its data belong to an unprivileged user, while the home stays root's
 * with mode 0711: that user passes through, but cannot touch the password, the lock or the copied binaries. When that
 * user cannot reach `directory` (a parent is closed to it), the home is a directory below /var/lib/svc-embedded whose
 * name starts with the hash of `directory`; once the data are there, {@link recordHome} writes down its path.
 *
 * @param directory as {@link createDirectory} returned it, locked
 * @throws {EmbeddedPostgresFault} when the data are not where they were recorded, as on another machine, or are root's;
 * when no unprivileged user exists, or it cannot reach the data that are already there
 */
export async function chooseHome(directory: string, log: (line: string) => void): Promise<Home> {
  const isRoot = process.getuid?.() === 0;
  const recorded = await findLocation(directory);
  if (recorded !== null && !(isRoot && (await isThere(join(recorded, "data")))))
    throw new EmbeddedPostgresFault(
      `the database of ${directory} is in ${recorded}, which belongs to root; copy that directory too and start as root, or choose another DATA_DIR`,
    );
  if (!isRoot) return homeAt(directory, null);
  const path = recorded ?? directory;
  const owner = await findOwner(join(path, "data"));
  const account = owner ?? (await findAccount());
  if (await canPass(account, [path])) return homeAt(path, account);
  if (recorded !== null || owner !== null) {
    throw new EmbeddedPostgresFault(
      `user ${account.uid}, as whom the database in ${path} runs, cannot reach that directory; open its parent directories (chmod o+x)`,
    );
  }
  const name = `${sha256(path).toString("hex").slice(0, 16)}-${randomBytes(4).toString("hex")}`;
  const elsewhere = join(fallbackParent, name);
  await createPassable(elsewhere);
  if (!(await canPass(account, [elsewhere])))
    throw new EmbeddedPostgresFault(`user ${account.uid} cannot reach ${elsewhere}`);
  log(`user ${account.uid} cannot reach ${path}; the database is kept in ${elsewhere}`);
  return homeAt(elsewhere, account);
}

/** Records in the file `location` of `directory` where its data are, if that is elsewhere. The data have to exist. */
export async function recordHome(directory: string, home: Home): Promise<void> {
  if (home.directory === directory || (await findLocation(directory)) !== null) return;
  await writeDurably(join(directory, "location"), home.directory);
}

/** The path of the home that {@link chooseHome} chose for `directory`; it need not exist. */
export async function findHomePath(directory: string): Promise<string> {
  return (await findLocation(resolve(directory))) ?? resolve(directory);
}

function homeAt(directory: string, account: Account | null): Home {
  return { directory, data: join(directory, "data"), account };
}

async function findLocation(directory: string): Promise<string | null> {
  return readIfPresent(join(directory, "location"));
}

/**
 * Creates `path`, passable for everyone, and missing parents; parents that exist are not loosened. Nobody else can write
 * there for a moment either, whatever the umask is.
 */
async function createPassable(path: string): Promise<void> {
  const parent = dirname(path);
  const first = await mkdir(parent, { recursive: true, mode: 0o755 });
  if (first !== undefined) {
    for (let each = parent; each.length >= first.length; each = dirname(each))
      await chmod(each, 0o755);
  }
  await mkdir(path, { recursive: true, mode: 0o711 });
  await chmod(path, 0o711);
}

async function isThere(path: string): Promise<boolean> {
  return (await lstat(path).catch(nullIfAbsent)) !== null;
}

async function findOwner(data: string): Promise<Account | null> {
  const found = await lstat(data).catch(nullIfAbsent);
  return found === null || found.uid === 0 ? null : { uid: found.uid, gid: found.gid };
}

async function findAccount(): Promise<Account> {
  for (const name of accountNames) {
    try {
      const [uid, gid] = await Promise.all(
        ["-u", "-g"].map(async (which) => Number((await run("id", [which, name])).stdout)),
      );
      if (uid !== undefined && gid !== undefined && uid > 0) return { uid, gid };
    } catch {
      // No such user; the next one may exist.
    }
  }
  throw new EmbeddedPostgresFault(
    `PostgreSQL refuses to run as root, and none of the users ${accountNames.join(", ")} exists`,
  );
}

/** Asks the system, as that user, whether all `paths` can be entered or executed. */
export async function canPass(account: Account, paths: readonly string[]): Promise<boolean> {
  const script = 'for path do test -x "$path" || exit 1; done';
  const asked = run("/bin/sh", ["-c", script, "sh", ...paths], { cwd: "/", ...account });
  return asked.then(
    () => true,
    (error: unknown) => {
      if (error instanceof Error && "code" in error && error.code === 1) return false;
      throw new EmbeddedPostgresFault(`cannot run a program as user ${account.uid}`, {
        cause: error,
      });
    },
  );
}

/** Creates a directory with mode 0700 that belongs to the server's user. */
export async function createPrivate(path: string, account: Account | null): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  await giveTo(path, account);
}

/**
 * Makes an empty directory for the socket: in the home or, if its path would be too long, below a temporary directory.
 */
export async function createSocketDirectory(home: Home): Promise<string> {
  const inHome = join(home.directory, "socket");
  if (fits(inHome)) {
    await rm(inHome, { recursive: true, force: true });
    await createPrivate(inHome, home.account);
    return inHome;
  }
  for (const parent of new Set([tmpdir(), "/tmp"])) {
    const isUsable =
      fits(join(parent, "svc-XXXXXX")) &&
      (home.account === null || (await canPass(home.account, [parent])));
    if (!isUsable) continue;
    const path = await mkdtemp(join(parent, "svc-"));
    await giveTo(path, home.account);
    return path;
  }
  throw new EmbeddedPostgresFault(
    `no directory with a path short enough for a socket: tried ${inHome}, ${tmpdir()} and /tmp`,
  );
}

function fits(directory: string): boolean {
  return Buffer.byteLength(join(directory, `.s.PGSQL.${socketPort}`)) <= socketPathBytesMax;
}

/**
 * Whether the socket in `host` is that of the server of these data: a copy of a home, made while its server ran, names
 * the socket of the original.
 */
export async function isSocketOf(data: string, host: string): Promise<boolean> {
  // Written by the server: its process id, then its data directory. What this user cannot read is somebody else's.
  const text = await readFile(join(host, `.s.PGSQL.${socketPort}.lock`), "utf8").catch(() => "");
  const [, served = ""] = text.split("\n");
  const paths = [served, data].map(async (path) => realpath(path).catch(() => null));
  const [one, other] = await Promise.all(paths);
  return served !== "" && one !== null && one === other;
}

/** Removes a socket directory: that of the server of these data, or an empty one, as a server that has ended leaves. */
export async function removeSocketDirectory(data: string, host: string): Promise<void> {
  if (await isSocketOf(data, host)) await rm(host, { recursive: true, force: true });
  else await rmdir(host).catch(() => undefined);
}

/** Hands a path over to the server's user. */
export async function giveTo(path: string, account: Account | null): Promise<void> {
  if (account !== null) await chown(path, account.uid, account.gid);
}

/**
 * Removes what interrupted starts have left behind. Only the holder of the home's lock may call it. The initdb of a start
 * that was killed outlives it for a moment, in which it still makes files there: so it tries again for up to 5.5 s.
 */
export async function removeLeftovers(home: Home): Promise<void> {
  const names = await readdir(home.directory);
  const left = names.filter((name) => name.includes(".new-"));
  const options = { recursive: true, force: true, maxRetries: 10, retryDelay: 100 };
  await Promise.all(left.map(async (name) => rm(join(home.directory, name), options)));
}

/**
 * The process id in the lock file of the data, or null without one. A server that was killed before it wrote its id, or a
 * power cut then, leaves a lock file without an id, beside which PostgreSQL refuses every start: that file is removed. Only
 * the holder of the home's lock may call it.
 */
export async function findServerPid(data: string): Promise<number | null> {
  const path = join(data, "postmaster.pid");
  for (let tries = 0; tries < pidTriesMax; tries += 1) {
    const text = await readIfPresent(path);
    if (text === null) return null;
    const pid = Number.parseInt(text, 10);
    if (pid > 0) return pid;
    // Negative for a server in single-user mode, which an operator may use here: PostgreSQL knows whether it lives.
    if (pid < 0) return null;
    await delay(pidEveryMs);
  }
  await rm(path, { force: true });
  return null;
}

/** A name beside `path` that {@link removeLeftovers} recognises. */
export function temporaryName(path: string): string {
  return `${path}.new-${randomBytes(6).toString("hex")}`;
}

/** Writes a file of mode 0600 that is complete or absent, even after a power cut. */
export async function writeDurably(path: string, text: string): Promise<void> {
  const temporary = temporaryName(path);
  const file = await open(temporary, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
  await renameDurably(temporary, path);
}

/** Renames within one directory and waits until the disk has it. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to);
  const directory = await open(dirname(to), "r");
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

export async function readIfPresent(path: string): Promise<string | null> {
  return readFile(path, "utf8").catch(nullIfAbsent);
}

/** Whether a directory is there with something in it. */
export async function isFilled(directory: string): Promise<boolean> {
  const names = await readdir(directory).catch(nullIfAbsent);
  return names !== null && names.length > 0;
}

function nullIfAbsent(error: unknown): null {
  if (
    error instanceof Error &&
    "code" in error &&
    (error.code === "ENOENT" || error.code === "ENOTDIR")
  )
    return null;
  throw error;
}

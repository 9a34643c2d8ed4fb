import { randomBytes } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { startBoundProcess } from "../process/bound-process.ts";
import type { BoundProcess } from "../process/bound-process.ts";
import { lockDirectory } from "../process/directory-lock.ts";
import type { DirectoryLock } from "../process/directory-lock.ts";
import { findBinaries } from "./embedded-postgres-binaries.ts";
import * as files from "./embedded-postgres-files.ts";
import type { Home } from "./embedded-postgres-files.ts";
import { hasOtherSessions } from "./embedded-postgres-store.ts";
import { keepTrying } from "./keep-trying.ts";
import {
  type Connection,
  connectionTo,
  retryEveryMs,
  tryConnection,
  user,
} from "./embedded-postgres-connection.ts";
import {
  EmbeddedPostgresInUse,
  type Plan,
  startServer,
  waitForOrphan,
} from "./embedded-postgres-server.ts";

/**
 * Whether a line of the server's log is about its own starts and stops. A stop also ends connections that the pool has
 * closed just now, if the server has not read that yet.
 */
export function isRoutine(line: string): boolean {
  return line.startsWith("LOG:") || endedSession.test(line);
}

/** With the place in a statement where one was being read at that moment. */
const endedSession =
  /^FATAL:  terminating connection due to administrator command(?: at character \d+)?$/;

/** A running embedded PostgreSQL server; closing stops it (fast shutdown). */
export interface EmbeddedPostgres extends AsyncDisposable {
  readonly connection: Connection;
  /** Ends all sessions and stops the server; settles when it is gone, after 20 s at the latest. */
  close(): Promise<void>;
}

const lockTriesMax = 10;
const restartEveryMs = 1_000;
/** Each attempt takes as long as all attempts for the lock together. */
const shareTriesMax = 60;
/** How long a shared server stays for the sessions of others: longer than a verb takes. */
const othersTriesMax = 1200;

/**
 * Starts the PostgreSQL server kept under `directory`, and creates it at the first start (0.7 s, later starts 0.1 s).
 * It listens on a Unix socket in a directory of mode 0700 only, demands a password (`scram-sha-256`, 256 random bits in
 * a file of mode 0600) and stops when this process ends in any way. As root the server runs as an unprivileged user,
 * and its data may be elsewhere: see {@link files.chooseHome}.
 *
 * @param options.log receives each line of the server's log, without time; it never holds values of rows
 * @param options.settings settings of PostgreSQL that replace those above, by name; for tests that trade durability for
 * speed
 * @throws {EmbeddedPostgresInUse} when a live process already runs it
 * @throws {EmbeddedPostgresFault} when it cannot be made or started here
 */
export async function startEmbeddedPostgres(options: {
  directory: string;
  log: (line: string) => void;
  settings?: Readonly<Record<string, string>>;
}): Promise<EmbeddedPostgres> {
  const directory = await files.createDirectory(options.directory);
  const locks: DirectoryLock[] = [];
  const lock = async (path: string): Promise<void> => {
    locks.push(await takeLock(path));
  };
  const release = (): void => locks.forEach((each) => each.release());
  try {
    await lock(directory);
    const home = await files.chooseHome(directory, options.log);
    // A copy of the directory names the same home as the original.
    if (home.directory !== directory) await lock(home.directory);
    const stalePid = await waitForOrphan(home, options.directory);
    await files.removeLeftovers(home);
    await removeSocket(home);
    const binaries = await findBinaries(home);
    const password = await initialise(home, binaries);
    await files.recordHome(directory, home);
    const host = await files.createSocketDirectory(home);
    await files.writeDurably(join(home.directory, "socket-directory"), host);
    const connection = connectionTo(host, password);
    const chosen = Object.entries(options.settings ?? {}).map(
      ([name, value]) => `${name}=${value}`,
    );
    const plan = { home, connection, binaries, stalePid, chosen };
    const server = await startServer(plan, options.log);
    return running({ server, plan, directory: options.directory }, { log: options.log, release });
  } catch (error) {
    release();
    throw error;
  }
}

/** Whether there is a server under `directory`, running or not; it reads only. */
export async function hasEmbeddedPostgres(directory: string): Promise<boolean> {
  const home = await files.findHomePath(directory);
  return (await files.readIfPresent(join(home, "data", "PG_VERSION"))) !== null;
}

/** A process that was just killed may hold its lock for another moment. */
async function takeLock(directory: string): Promise<DirectoryLock> {
  for (let tries = 0; tries < lockTriesMax; tries += 1) {
    const lock = lockDirectory(directory);
    if (lock !== null) return lock;
    await delay(retryEveryMs);
  }
  throw new EmbeddedPostgresInUse(directory);
}

/**
 * The connection of the server that another process runs on this directory, or null when none answers. A server that
 * is about to start or stop is waited for, 5 s at most.
 */
export async function findEmbeddedPostgres(directory: string): Promise<Connection | null> {
  const home = await files.findHomePath(directory);
  const host = await files.readIfPresent(join(home, "socket-directory"));
  const password = await files.readIfPresent(join(home, "password"));
  if (host === null || password === null) return null;
  if (!(await files.isSocketOf(join(home, "data"), host))) return null;
  const connection = connectionTo(host, password);
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await tryConnection(connection);
    if (answer !== "busy") return answer === "ready" ? connection : null;
    await delay(retryEveryMs);
  }
  return null;
}

/**
 * The server of this directory that another process runs, or else one that is started here. Another process may hold
 * the directory before its server answers: this waits for that, for 30 s or more.
 *
 * @returns closing it leaves a server of another process alone; if the server is our own, closing waits up to a minute
 * for the sessions of others
 * @throws as {@link startEmbeddedPostgres}
 */
export async function shareEmbeddedPostgres(options: {
  directory: string;
  log: (line: string) => void;
}): Promise<Pick<EmbeddedPostgres, "connection" | "close">> {
  for (let tries = 1; ; tries += 1) {
    const connection = await findEmbeddedPostgres(options.directory);
    const held = connection === null ? null : await hold(connection);
    if (held !== null) return held;
    try {
      const own = await startEmbeddedPostgres(options);
      const close = async (): Promise<void> => {
        // One that does not answer has no sessions.
        await waitForOthers(own.connection).catch(() => undefined);
        await own.close();
      };
      return { connection: own.connection, close };
    } catch (error) {
      if (!(error instanceof EmbeddedPostgresInUse) || tries >= shareTriesMax) throw error;
    }
  }
}

/**
 * Stays connected, so that the process that started the server keeps it running; null if the server has ended
 * meanwhile.
 */
async function hold(
  connection: Connection,
): Promise<Pick<EmbeddedPostgres, "connection" | "close"> | null> {
  const client = new Client(connection);
  client.on("error", () => undefined);
  try {
    await client.connect();
  } catch {
    return null;
  }
  return { connection, close: async () => client.end() };
}

async function waitForOthers(connection: Connection): Promise<void> {
  const client = new Client(connection);
  client.on("error", () => undefined);
  await client.connect();
  try {
    for (let tries = 0; tries < othersTriesMax && (await hasOtherSessions(client)); tries += 1)
      await delay(retryEveryMs);
  } finally {
    await client.end();
  }
}

/** Keeps the server running: one that ended by itself, as on a full disk, is started again until it runs or is closed. */
function running(
  { server, plan, directory }: { server: BoundProcess; plan: Plan; directory: string },
  { log, release }: { log: (line: string) => void; release: () => void },
): EmbeddedPostgres {
  let current = server;
  let closing: Promise<void> | undefined;
  const over = new AbortController();
  const keep = async (): Promise<void> => {
    while (!over.signal.aborted) {
      // Only now: a start under way has to keep this process alive.
      current.unref();
      const status = await current.exited;
      if (over.signal.aborted) return;
      log(`the embedded PostgreSQL ended by itself with status ${status}`);
      current = (await startAgain(plan, { directory, log, over: over.signal })) ?? current;
    }
  };
  const kept = keep();
  const stop = async (): Promise<void> => {
    over.abort();
    try {
      await current.stop();
      await kept;
      // A start that was under way may have succeeded.
      await current.stop();
      await removeSocket(plan.home);
    } finally {
      release();
    }
  };
  const close = async (): Promise<void> => (closing ??= stop());
  return { connection: plan.connection, close, [Symbol.asyncDispose]: close };
}

/** Tries until the server runs. @returns null if it was closed before */
async function startAgain(
  plan: Plan,
  { directory, log, over }: { directory: string; log: (line: string) => void; over: AbortSignal },
): Promise<BoundProcess | null> {
  const start = async (say: typeof log): Promise<BoundProcess> => {
    const stalePid = await waitForOrphan(plan.home, directory);
    return startServer({ ...plan, stalePid, over }, say);
  };
  return keepTrying(start, { log, over, everyMs: restartEveryMs });
}

/** Removes the socket directory of the last run, as recorded, and then the record. */
async function removeSocket(home: Home): Promise<void> {
  const record = join(home.directory, "socket-directory");
  const host = await files.readIfPresent(record);
  if (host !== null) await files.removeSocketDirectory(home.data, host);
  await rm(record, { force: true });
}

/**
 * Makes the database at the first start and returns its password. initdb works in a temporary directory that is renamed
 * when complete, so an initialisation that was killed is simply done again.
 */
async function initialise(home: Home, binaries: string): Promise<string> {
  const passwordFile = join(home.directory, "password");
  const known = await files.readIfPresent(passwordFile);
  const isInitialised = (await files.readIfPresent(join(home.data, "PG_VERSION"))) !== null;
  if (!isInitialised && (await files.isFilled(home.data)))
    throw new files.EmbeddedPostgresFault(
      `${home.data} is no whole database, since its PG_VERSION is missing: restore it, or move it away to begin anew`,
    );
  if (isInitialised && known === null)
    throw new files.EmbeddedPostgresFault(
      `${passwordFile} is missing, and the database cannot be opened without it`,
    );
  const password = known ?? randomBytes(32).toString("hex");
  if (known === null) await files.writeDurably(passwordFile, password);
  if (isInitialised) return password;

  const temporary = files.temporaryName(home.data);
  const data = join(temporary, "data");
  await files.createPrivate(temporary, null);
  // initdb runs as the server's user, who cannot read the permanent password file.
  await files.writeDurably(join(temporary, "password"), password);
  await files.giveTo(join(temporary, "password"), home.account);
  await files.giveTo(temporary, home.account);
  await runInitdb(
    [join(binaries, "initdb"), "-D", data, `--pwfile=${join(temporary, "password")}`],
    home,
  );
  await files.renameDurably(data, home.data);
  await rm(temporary, { recursive: true });
  return password;
}

async function runInitdb(command: string[], home: Home): Promise<void> {
  const output: string[] = [];
  const choices = [
    "--encoding=UTF8",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    "--no-instructions",
  ];
  const initdb = startBoundProcess([...command, "-U", user, "-A", "scram-sha-256", ...choices], {
    account: home.account,
    log: (line) => output.push(line),
  });
  const status = await initdb.exited;
  if (status !== 0)
    throw new files.EmbeddedPostgresFault(
      `initdb failed with status ${status}: ${output.slice(-10).join("; ")}`,
    );
}

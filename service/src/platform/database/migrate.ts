import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { sha256 } from "../cryptography/sha256.ts";
import { isLockTimeout, sqlState } from "./database-fault.ts";
import { type Db, openDb, type Queryable } from "./db.ts";
import * as store from "./migration-store.ts";
import { refuseUnfit } from "./requirements.ts";

const directory = join(import.meta.dirname, "../../../migrations");

export interface Migration {
  readonly number: number;
  readonly name: string;
  readonly text: string;
  readonly sha256: string;
}

/** The migrations of this version of the code, in order: files named 0001_name.sql, forward only. */
export function listMigrations(): Migration[] {
  const names = readdirSync(directory)
    .filter((name) => name.endsWith(".sql"))
    .toSorted();
  return names.map((name) => {
    const text = readFileSync(join(directory, name), "utf8");
    return {
      number: Number(name.slice(0, 4)),
      name,
      text,
      sha256: sha256(text).toString("hex"),
    };
  });
}

/** The database was migrated by other files than these, or by another program. */
class OtherVersion extends Error {
  override name = "OtherVersion";
}

/** Somebody else holds a table for longer than callers may be kept waiting behind a migration of it. */
class TableInUse extends Error {
  override name = "TableInUse";

  constructor(migration: string) {
    super(
      `${migration} waits for a table that another session has in use, such as a dump of the database: start again when that session has ended`,
    );
  }
}

/** SQLSTATE of a statement that names a column that is not there. */
const undefinedColumnState = "42703";
/** Between two tries, callers that queued behind the migration proceed. */
const pauseMs = 3_000;
/** Together with what each try waits for its table, a minute. */
const triesMax = 12;

/**
 * Brings the database to this version of the code and returns the names that ran. Processes that start together take
 * turns on an advisory lock, so each migration runs once. Each runs in a transaction of its own, together with its
 * record, so that running processes wait for its tables no longer than it takes. Where a table is in use, they get on
 * between its tries. The connection is a separate one, without the time-outs of the service.
 *
 * @param pause what separates two tries
 * @throws {OtherVersion} if the database is ahead of the code, or an applied file has been changed since
 * @throws {TableInUse} if one was still in use after a minute
 * @throws {UnfitDatabase} as {@link refuseUnfit} does
 */
export async function migrate(
  db: Db,
  pause: () => Promise<void> = async () => delay(pauseMs),
): Promise<string[]> {
  if ((await listPending(db)).length === 0) return [];
  await using own = openDb({ ...db.connectionString, connections: 1, query_timeout: 0 });
  const known = listMigrations();
  const ran: string[] = [];
  for (;;) {
    const name = await tryNext(own, known, pause);
    if (name === null) return ran;
    ran.push(name);
  }
}

/** @returns null if all have run */
async function tryNext(
  own: Db,
  known: readonly Migration[],
  pause: () => Promise<void>,
): Promise<string | null> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await own.transaction(async (tx) => runNext(tx, known));
    } catch (error) {
      if (!(error instanceof TableInUse) || tries === triesMax) throw error;
    }
    await pause();
  }
}

async function runNext(tx: Queryable, known: readonly Migration[]): Promise<string | null> {
  await store.lockMigrations(tx);
  await store.createMigrationTable(tx);
  const [next] = pendingOf(known, await store.listApplied(tx));
  if (next === undefined) return null;
  try {
    await store.runMigration(tx, next);
  } catch (error) {
    throw isLockTimeout(error) ? new TableInUse(next.name) : error;
  }
  return next.name;
}

/**
 * The names of the migrations that {@link migrate} would run; it reads only.
 *
 * @throws {OtherVersion} and {UnfitDatabase} as `migrate` does
 */
export async function listPending(db: Queryable): Promise<string[]> {
  await refuseUnfit(db);
  const applied = (await store.hasMigrationTable(db)) ? await listApplied(db) : [];
  return pendingOf(listMigrations(), applied).map((each) => each.name);
}

async function listApplied(db: Queryable): Promise<store.AppliedMigration[]> {
  try {
    return await store.listApplied(db);
  } catch (error) {
    if (sqlState(error) !== undefinedColumnState) throw error;
    throw new OtherVersion(
      "the database (DATABASE_URL) holds a table `migration` that another program made: give svc a database of its own",
    );
  }
}

/**
 * For a caller that must not migrate.
 *
 * @throws if {@link migrate} would run something, and {@link OtherVersion} as it does
 */
export async function refusePending(db: Queryable): Promise<void> {
  if ((await listPending(db)).length > 0)
    throw new Error("the database is behind this version; `svc migrate` comes first");
}

function pendingOf(
  known: readonly Migration[],
  applied: readonly store.AppliedMigration[],
): Migration[] {
  for (const row of applied) {
    const file = known.find((each) => each.number === row.number);
    if (file === undefined)
      throw new OtherVersion(
        `the database holds migration ${row.number}, which this version does not know`,
      );
    if (file.sha256 !== row.sha256)
      throw new OtherVersion(`${file.name} was changed after it ran; write a new migration`);
  }
  return known.filter((each) => applied.every((row) => row.number !== each.number));
}

import { randomBytes } from "node:crypto";
import { type Db, openDb, type Queryable } from "./db.ts";
import { settingsNeeded } from "./session-settings.ts";
import * as store from "./requirements-store.ts";

/** The database, or what stands before it, would fail some calls and not others. */
class UnfitDatabase extends Error {
  override name = "UnfitDatabase";
}

/** The oldest PostgreSQL that has all that the statements use; on an older one, migrations would fail halfway. */
const versionMin = 150_000;
/** SQL_ASCII stores every text as it comes, but counts bytes where the length of a text is bounded. */
const encodings: ReadonlySet<string> = new Set(["UTF8", "SQL_ASCII"]);

/**
 * @throws {UnfitDatabase} for a PostgreSQL older than 15, for an encoding that cannot store every text, and if sessions
 * do not begin with the settings that they ask for, because a pooler drops them or the address sets others
 */
export async function refuseUnfit(db: Queryable): Promise<void> {
  const found = await store.findFitness(db, settingsNeeded);
  if (found === undefined) return;
  if (found.version < versionMin)
    throw new UnfitDatabase(
      `the database (DATABASE_URL) is PostgreSQL ${Math.floor(found.version / 10_000)}: version 15 or newer is required`,
    );
  if (!encodings.has(found.encoding))
    throw new UnfitDatabase(
      `the database (DATABASE_URL) has the encoding ${found.encoding}: create one with the encoding UTF8`,
    );
  if (found.missing.length > 0)
    throw new UnfitDatabase(
      `sessions of the database (DATABASE_URL) begin without ${found.missing.join(", ")}: either the address sets other values, or a pooler drops these; in the latter case set them for the database's user with "alter role", and let the pooler reconnect`,
    );
}

/**
 * Some poolers in transaction mode support prepared statements, so that nothing fails, but notifications and session
 * locks get lost. They are recognised by two connections that share a session.
 *
 * @throws {UnfitDatabase} if a lock that one connection holds is granted to the other too
 */
export async function refuseShared(one: Queryable, other: Queryable): Promise<void> {
  // A number that nobody else uses; it is freed when the session ends.
  const key = randomBytes(8).readBigInt64BE().toString();
  if ((await store.takeSessionLock(one, key)) && (await store.takeSessionLock(other, key)))
    throw new UnfitDatabase(
      "a pooler in transaction mode is in front of the database (DATABASE_URL): two connections share a session; set its mode to `session`",
    );
}

/** @throws {UnfitDatabase} as {@link refuseShared} does, for the connections of this pool and another one */
export async function refuseSharedSessions(db: Db): Promise<void> {
  await using own = openDb({ ...db.connectionString, connections: 1 });
  await refuseShared(own, db);
}

// Two things at the same instant: one is held by a row, and the other begins only once the first waits there.
import { type Queryable, sql } from "../service/src/platform/database/db.ts";
import { until } from "./patience.ts";

/**
 * How many sessions of this database wait for a lock. One that was granted its lock counts no more, although
 * `pg_stat_activity` alone says that it waits until it has woken up.
 */
export async function countBlocked(db: Queryable): Promise<number> {
  const rows = await db.query(sql`
    select from pg_stat_activity activity
    where datname = current_database() and wait_event_type = 'Lock'
      and exists (select from pg_locks where pg_locks.pid = activity.pid and not granted)`);
  return rows.length;
}

/** Resolves once so many sessions of this database wait for a lock. */
export async function untilBlocked(db: Queryable, sessions = 1): Promise<void> {
  await until("somebody waits for a lock", async () =>
    (await countBlocked(db)) >= sessions ? true : null,
  );
}

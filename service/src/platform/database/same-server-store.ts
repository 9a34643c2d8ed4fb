import { type Queryable, sql } from "./db.ts";

/** When the server behind a connection of the pool was started: unique to each server, whatever the time zone. */
export async function readServerStart(db: Queryable): Promise<string> {
  const [row] = await db.query<{ start: string }>(
    sql`select extract(epoch from pg_postmaster_start_time())::text as start`,
  );
  return row?.start ?? "";
}

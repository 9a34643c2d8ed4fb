import { type Queryable, sql } from "./db.ts";

/** When the server began that a connection of the pool leads to: no two servers say the same, and sessions of any time zone do. */
export async function readServerStart(db: Queryable): Promise<string> {
  const [row] = await db.query<{ start: string }>(
    sql`select extract(epoch from pg_postmaster_start_time())::text as start`,
  );
  return row?.start ?? "";
}

import { type Queryable, sql } from "../database/db.ts";

/** False on a read-only server, such as a former primary. */
export async function isWritable(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ is_writable: boolean }>(
    sql`select current_setting('transaction_read_only') = 'off' as is_writable`,
  );
  return row?.is_writable === true;
}

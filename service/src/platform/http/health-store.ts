import { type Queryable, sql } from "../database/db.ts";

/** False of a server that only reads, as one that others have replaced. */
export async function isWritable(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ is_writable: boolean }>(
    sql`select current_setting('transaction_read_only') = 'off' as is_writable`,
  );
  return row?.is_writable === true;
}

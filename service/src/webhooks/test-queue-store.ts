import { type Db, type Queryable, sql } from "../platform/database/db.ts";

/** PostgreSQL looks at the tables that claims read, as it does by itself now and then. */
export async function analyzeQueue(db: Db): Promise<void> {
  await db.query(sql`analyze webhook_delivery, webhook_event, webhook_endpoint`);
}

/** All of it waits for endpoints in quarantine. */
export async function holdQueue(db: Db): Promise<void> {
  await db.query(sql`update webhook_delivery set is_held = true`);
  // What the indexes had of it before would count as read.
  await db.query(sql`vacuum webhook_delivery`);
}

/** Entries of the queue's indexes that the transaction has read so far, by the name of the index. */
export async function countIndexReads(tx: Queryable): Promise<Record<string, number>> {
  const rows = await tx.query<{ name: string; reads: number }>(sql`
    select indexrelname as name, pg_stat_get_xact_tuples_returned(indexrelid) as reads
    from pg_stat_user_indexes where relname = 'webhook_delivery'`);
  return Object.fromEntries(rows.map(({ name, reads }) => [name, reads]));
}

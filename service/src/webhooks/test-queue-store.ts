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

/** All of it is delivered, and its pages are given back where they may be. */
export async function emptyQueue(db: Db): Promise<void> {
  await db.query(sql`delete from webhook_delivery`);
  await db.query(sql`vacuum webhook_delivery`);
}

/** All of it is delivered but the last, which keeps the pages before it from being given back. */
export async function drainQueue(db: Db): Promise<void> {
  await db.query(
    sql`delete from webhook_delivery where ctid < (select max(ctid) from webhook_delivery)`,
  );
  await db.query(sql`vacuum (analyze) webhook_delivery`);
}

/** Entries of the queue's indexes that the transaction has read so far, by the name of the index. */
export async function countIndexReads(tx: Queryable): Promise<Record<string, number>> {
  const rows = await tx.query<{ name: string; reads: number }>(sql`
    select indexrelname as name, pg_stat_get_xact_tuples_returned(indexrelid) as reads
    from pg_stat_user_indexes where relname = 'webhook_delivery'`);
  return Object.fromEntries(rows.map(({ name, reads }) => [name, reads]));
}

/** Rows that were read from one end of a table to the other, by earlier transactions of the connection too. */
export async function countScanned(
  tx: Queryable,
  table: "webhook_delivery" | "webhook_endpoint",
): Promise<number> {
  const [row] = await tx.query<{ scanned: number }>(sql`
    select pg_stat_get_xact_tuples_returned(${table}::text::regclass) as scanned`);
  return row?.scanned ?? NaN;
}

/** So many endpoints had a delivery of late. */
export async function insertPaces(db: Db, count: number): Promise<void> {
  await db.query(sql`
    insert into webhook_endpoint (id, next_at_ms) select gen_random_uuid(), 0 from generate_series(1, ${count}::int)`);
}

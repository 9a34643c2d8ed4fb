import { type Db, type Queryable, sql } from "../platform/database/db.ts";

/** Updates the statistics of the tables that claims read, as autovacuum does from time to time. */
export async function analyzeQueue(db: Db): Promise<void> {
  await db.query(sql`analyze webhook_delivery, webhook_event, webhook_endpoint`);
}

/** Marks the whole queue as held. */
export async function holdQueue(db: Db): Promise<void> {
  await db.query(sql`update webhook_delivery set is_held = true`);
  // Otherwise the dead index entries would be counted as read.
  await db.query(sql`vacuum webhook_delivery`);
}

/** Empties the queue and truncates its table. */
export async function emptyQueue(db: Db): Promise<void> {
  await db.query(sql`delete from webhook_delivery`);
  await db.query(sql`vacuum webhook_delivery`);
}

/** Empties the queue except for its last row, which keeps the table from being truncated. */
export async function drainQueue(db: Db): Promise<void> {
  await db.query(
    sql`delete from webhook_delivery where ctid < (select max(ctid) from webhook_delivery)`,
  );
  await db.query(sql`vacuum (analyze) webhook_delivery`);
}

/** How many index entries of the queue the transaction has read so far, by index. */
export async function countIndexReads(tx: Queryable): Promise<Record<string, number>> {
  const rows = await tx.query<{ name: string; reads: number }>(sql`
    select indexrelname as name, pg_stat_get_xact_tuples_returned(indexrelid) as reads
    from pg_stat_user_indexes where relname = 'webhook_delivery'`);
  return Object.fromEntries(rows.map(({ name, reads }) => [name, reads]));
}

/** How many rows were read by sequential scans of a table, by earlier transactions of the connection too. */
export async function countScanned(
  tx: Queryable,
  table: "webhook_delivery" | "webhook_endpoint",
): Promise<number> {
  const [row] = await tx.query<{ scanned: number }>(sql`
    select pg_stat_get_xact_tuples_returned(${table}::text::regclass) as scanned`);
  return row?.scanned ?? NaN;
}

/** Inserts paces of that many endpoints. */
export async function insertPaces(db: Db, count: number): Promise<void> {
  await db.query(sql`
    insert into webhook_endpoint (id, next_at_ms) select gen_random_uuid(), 0 from generate_series(1, ${count}::int)`);
}

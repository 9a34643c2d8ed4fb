import { type Queryable, sql } from "./database/db.ts";

export async function readOffsetSeconds(db: Queryable): Promise<number> {
  const [row] = await db.query<{ offset_seconds: number }>(sql`select offset_seconds from clock`);
  return row?.offset_seconds ?? 0;
}

/**
 * @param payload of the notification that tells every process
 * @returns the new offset
 */
export async function addOffsetSeconds(
  db: Queryable,
  seconds: number,
  payload: string,
): Promise<number> {
  const [row] = await db.query<{ offset_seconds: number }>(sql`
    with moved as (update clock set offset_seconds = offset_seconds + ${seconds} returning offset_seconds)
    select offset_seconds, pg_notify('clock', ${payload}) from moved`);
  return row?.offset_seconds ?? 0;
}

/** Unix milliseconds, with fraction, by the database's clock at this moment. */
export async function readDatabaseMs(db: Queryable): Promise<number> {
  const [row] = await db.query<{ ms: number }>(
    sql`select (extract(epoch from clock_timestamp()) * 1000)::float8 as ms`,
  );
  return row?.ms ?? 0;
}

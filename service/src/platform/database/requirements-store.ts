import { type Queryable, sql } from "./db.ts";

/** What decides whether a database is fit. */
export interface Fitness {
  /** As PostgreSQL counts: 150000 is 15.0. */
  readonly version: number;
  readonly encoding: string;
  /** The settings asked for that its sessions do not begin with. */
  readonly missing: readonly string[];
}

/** @param settings each as `name=value` */
export async function findFitness(
  db: Queryable,
  settings: readonly string[],
): Promise<Fitness | undefined> {
  const [row] = await db.query<Fitness>(sql`
    select current_setting('server_version_num')::integer as version, current_setting('server_encoding') as encoding, array(
      select setting from unnest(${settings}::text[]) as setting
      where current_setting(split_part(setting, '=', 1), true) is distinct from split_part(setting, '=', 2)) as missing`);
  return row;
}

/**
 * Takes a lock until the session ends.
 *
 * @returns false if another session has it; true also if this one has it already
 * @param key an integer of 8 bytes
 */
export async function takeSessionLock(db: Queryable, key: string): Promise<boolean> {
  const [row] = await db.query<{ is_taken: boolean }>(
    sql`select pg_try_advisory_lock(${key}::bigint) as is_taken`,
  );
  return row?.is_taken === true;
}

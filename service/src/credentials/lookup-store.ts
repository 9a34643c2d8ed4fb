import { type Queryable, sql } from "../platform/database/db.ts";

/** A key that asked about a user. */
export interface Lookup {
  readonly keyId: string;
  readonly user: string;
  /** The start of the minute, Unix seconds. */
  readonly at: number;
}

export async function insertLookups(db: Queryable, lookups: readonly Lookup[]): Promise<void> {
  await db.query(
    sql`insert into lookup (key_id, user_address, at)
      select distinct * from unnest(${lookups.map(({ keyId }) => keyId)}::text[],
        ${lookups.map(({ user }) => user)}::text[], ${lookups.map(({ at }) => at)}::bigint[])
      on conflict do nothing`,
  );
}

/** @returns how many went */
export async function deleteLookups(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    delete from lookup where ctid = any(array(
      select ctid from lookup where at < ${before} order by at limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}

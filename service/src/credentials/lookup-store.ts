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

export async function deleteLookups(db: Queryable, before: number): Promise<void> {
  await db.query(sql`delete from lookup where at < ${before}`);
}

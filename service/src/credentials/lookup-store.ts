import { type Queryable, sql } from "../platform/database/db.ts";

/** A key that asked about a user. */
export interface Lookup {
  readonly keyId: string;
  readonly user: string;
  /** The start of the minute, Unix seconds. */
  readonly at: number;
}

/** The columns to insert, sorted, so that concurrent writers cannot deadlock. */
export function lookupColumns(lookups: readonly Lookup[]) {
  const sorted = lookups.toSorted((a, b) => (a.keyId + a.user < b.keyId + b.user ? -1 : 1));
  return {
    keyIds: sorted.map(({ keyId }) => keyId),
    users: sorted.map(({ user }) => user),
    minutes: sorted.map(({ at }) => at),
  };
}

export async function insertLookups(db: Queryable, lookups: readonly Lookup[]): Promise<void> {
  const { keyIds, users, minutes } = lookupColumns(lookups);
  await db.query(sql`
    insert into lookup (key_id, user_address, at)
    select * from unnest(${keyIds}::text[], ${users}::text[], ${minutes}::bigint[]) on conflict do nothing`);
}

/** An API key that asked about a user in a minute. */
export interface KeptLookup {
  readonly keyId: string;
  /** The start of the minute, Unix seconds. */
  readonly askedAt: number;
}

/** Newest first. The index begins with the key, so it is searched once for each key that ever asked about anybody. */
export async function listLookupsOf(
  db: Queryable,
  user: string,
  limit: number,
): Promise<KeptLookup[]> {
  return db.query<KeptLookup>(sql`
    with recursive asking as (
      (select key_id from lookup order by key_id limit 1)
      union all
      select (select key_id from lookup where key_id > asking.key_id order by key_id limit 1)
      from asking where key_id is not null)
    select lookup.key_id as "keyId", lookup.at as "askedAt"
    from asking cross join lateral (select * from lookup where key_id = asking.key_id and user_address = ${user}) as lookup
    order by lookup.at desc, lookup.key_id limit ${limit}`);
}

/** @returns how many were deleted */
export async function deleteLookups(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    delete from lookup where ctid = any(array(
      select ctid from lookup where at < ${before} limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}

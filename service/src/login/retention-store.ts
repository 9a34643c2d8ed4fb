import { type Queryable, sql } from "../platform/database/db.ts";

/**
 * Removes at most `limit` attempts created before `before`, Unix seconds; live token families hold their own copy of
 * what they need.
 *
 * @returns how many were removed
 */
export async function purgeAttempts(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    delete from login where id = any(array(
      select id from login where created_at < ${before} order by created_at limit ${limit}))
    returning id`);
  return rows.length;
}

/**
 * Reads one page of sessions, by id, and removes those that ended or were last used before `before`, Unix seconds. A
 * session whose tokens can still be refreshed stays: a logout finds those tokens, and the clients to tell, by their
 * session.
 *
 * @returns the last id of the page, for `after` of the next one; null for an empty page
 */
export async function purgeSessions(
  db: Queryable,
  purge: { now: number; before: number; after: string; limit: number },
): Promise<string | null> {
  // `limit 1` makes PostgreSQL look up each session's tokens by the index; otherwise it reads and joins all families.
  const [last] = await db.query<{ id: string }>(sql`
    with page as materialized (
      select id, (ended_at < ${purge.before} or used_at < ${purge.before}) as is_old from session
      where id > ${purge.after} order by id limit ${purge.limit}),
    dead as (
      select id from page where is_old and not coalesce((
        select true from token_family where session_id = page.id and revoked_at is null
          and coalesce(refresh_expires_at, expires_at) > ${purge.now} limit 1), false)),
    gone as (
      delete from session where id = any(array(select id from dead))
        and (ended_at < ${purge.before} or used_at < ${purge.before}))
    select id from page order by id desc limit 1`);
  return last?.id ?? null;
}

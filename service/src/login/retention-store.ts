import { type Queryable, sql } from "../platform/database/db.ts";

/** Removes attempts that began before a moment; a live family keeps what it needs itself. @returns how many went */
export async function purgeAttempts(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    delete from login where id = any(array(
      select id from login where created_at < ${before} order by created_at limit ${limit}))
    returning id`);
  return rows.length;
}

/**
 * Removes browser sessions of one page that ended or were last used before a moment, with what they remember. One with
 * tokens that can still be refreshed stays: a logout ends them, and tells the client, by the session.
 *
 * @returns the last id of the page, behind which the next one begins; null where there was none
 */
export async function purgeSessions(
  db: Queryable,
  purge: { now: number; before: number; after: string; limit: number },
): Promise<string | null> {
  // The `limit 1` looks each session's tokens up by the index; without it all families are read and joined.
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

import { type Queryable, sql } from "../../platform/database/db.ts";

/**
 * Reads one page of token families, by id, and removes those that cannot yield a good token any more: expired, long
 * revoked, or idle for too long. Pages through the whole table, since an index on these columns would cost every
 * refresh a write.
 *
 * @returns the last id of the page, for `after` of the next one; null for an empty page
 */
export async function purgeFamilies(
  db: Queryable,
  purge: { now: number; revokedBefore: number; idleBefore: number; after: string; limit: number },
): Promise<string | null> {
  const [last] = await db.query<{ id: string }>(sql`
    with page as materialized (
      select id, (expires_at <= ${purge.now} or revoked_at < ${purge.revokedBefore}
          or refresh_expires_at < ${purge.idleBefore}) as is_over
      from token_family where id > ${purge.after} order by id limit ${purge.limit}),
    gone as (
      delete from token_family where id = any(array(select id from page where is_over))
        and (expires_at <= ${purge.now} or revoked_at < ${purge.revokedBefore} or refresh_expires_at < ${purge.idleBefore}))
    select id from page order by id desc limit 1`);
  return last?.id ?? null;
}

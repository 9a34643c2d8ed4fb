import { type Queryable, sql } from "../platform/db.ts";

/**
 * Removes families that cannot yield a good token any more: over, long revoked, or idle for too long. Reads the whole
 * table, since an index on these columns would make every refresh write it.
 *
 * @returns how many went; fewer than `limit` means that none is left
 */
export async function purgeFamilies(
  db: Queryable,
  purge: { now: number; revokedBefore: number; idleBefore: number; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    delete from token_family where id in (
      select id from token_family
      where expires_at <= ${purge.now} or revoked_at < ${purge.revokedBefore} or refresh_expires_at < ${purge.idleBefore}
      limit ${purge.limit})
    returning id`);
  return rows.length;
}

import { type Queryable, sql } from "../../platform/database/db.ts";

/** Deletes the sealed successors of these families that were made by `beforeMs`, Unix milliseconds. */
export async function deleteSuccessors(
  db: Queryable,
  familyIds: readonly string[],
  beforeMs: number,
): Promise<void> {
  await db.query(sql`
    update token_family set successor_sealed = null
    where id = any(${familyIds}::uuid[]) and successor_sealed is not null and rotated_at_ms <= ${Math.floor(beforeMs)}`);
}

/**
 * As {@link deleteSuccessors}, for one page of all families, by id.
 *
 * @returns the last id of the page, for `after` of the next one; null for an empty page
 */
export async function deleteSuccessorsOfPage(
  db: Queryable,
  { beforeMs, after, limit }: { beforeMs: number; after: string; limit: number },
): Promise<string | null> {
  const before = Math.floor(beforeMs);
  const [last] = await db.query<{ id: string }>(sql`
    with page as materialized (
      select id, (successor_sealed is not null and rotated_at_ms <= ${before}) as is_over
      from token_family where id > ${after} order by id limit ${limit}),
    emptied as (
      update token_family set successor_sealed = null
      where id = any(array(select id from page where is_over)) and rotated_at_ms <= ${before})
    select id from page order by id desc limit 1`);
  return last?.id ?? null;
}

import { type Queryable, sql } from "../../platform/database/db.ts";

/** Deletes the copies of these families that were made before a time, in Unix milliseconds. */
export async function deleteCopies(
  db: Queryable,
  familyIds: readonly string[],
  beforeMs: number,
): Promise<void> {
  await db.query(sql`
    update token_family set successor_sealed = null
    where id = any(${familyIds}::uuid[]) and successor_sealed is not null and rotated_at_ms <= ${Math.floor(beforeMs)}`);
}

/** Deletes every copy that was made before a time, in Unix milliseconds; reads the whole table. */
export async function deleteAllCopies(db: Queryable, beforeMs: number): Promise<void> {
  await db.query(sql`
    update token_family set successor_sealed = null
    where successor_sealed is not null and rotated_at_ms <= ${Math.floor(beforeMs)}`);
}

import { isLockTimeout } from "./database-fault.ts";
import { type Db, sql, type Statement } from "./db.ts";

/**
 * Waits until nobody holds a row, for a job that has done everything else and would come back only with its next poll.
 * A process that stands still may hold one for long, so after a second the job goes on to what is due by then.
 *
 * @param locked selects one row for update, or for no key update; a single one, so that waiting for it blocks nobody who
 * holds two
 * @returns false if there is no such row any more, or somebody still holds it
 */
export async function waitForRow(db: Db, locked: Statement): Promise<boolean> {
  try {
    return await db.transaction(async (tx) => {
      await tx.query(sql`set local lock_timeout = '1s'`);
      return (await tx.query(locked)).length === 1;
    });
  } catch (error) {
    if (isLockTimeout(error)) return false;
    throw error;
  }
}

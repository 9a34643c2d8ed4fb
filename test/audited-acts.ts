import { type Queryable, sql } from "../service/src/platform/database/db.ts";

/** What the audit trail has about a subject, oldest first: the actor and the action, with a blank between. */
export async function actsOn(db: Queryable, subject: string): Promise<string[]> {
  const rows = await db.query<{ act: string }>(
    sql`select actor || ' ' || action as act from audit_entry where subject = ${subject} order by id`,
  );
  return rows.map(({ act }) => act);
}

import { type Queryable, sql } from "../../platform/database/db.ts";
import { purgeOf } from "../../platform/database/purge-store.ts";
import type { Form } from "../../platform/http/http-input.ts";

export interface PushedRow {
  readonly id: string;
  readonly clientId: string;
  readonly parameters: Form;
  readonly expiresAt: number;
}

export async function insertPushed(db: Queryable, pushed: PushedRow): Promise<void> {
  await db.query(sql`
    insert into pushed_request (id, client_id, parameters, expires_at)
    values (${pushed.id}, ${pushed.clientId}, ${JSON.stringify(pushed.parameters)}, ${pushed.expiresAt})`);
}

/** The parameters of a pushed request that was not used. */
export async function findPushed(
  db: Queryable,
  id: string,
  { clientId, now }: { clientId: string; now: number },
): Promise<Form | null> {
  const [row] = await db.query<{ parameters: Form }>(sql`
    select parameters from pushed_request where id = ${id} and client_id = ${clientId} and expires_at > ${now}`);
  return row?.parameters ?? null;
}

/** Uses a pushed request up. False where it was used already. */
export async function deletePushed(db: Queryable, id: string): Promise<boolean> {
  const rows = await db.query(sql`delete from pushed_request where id = ${id} returning id`);
  return rows.length === 1;
}

export const purgePushed = purgeOf({
  table: "pushed_request",
  key: "id",
  time: "expires_at",
  isInclusive: true,
});

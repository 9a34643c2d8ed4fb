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

/** Takes a pushed request out; nobody gets it twice. */
export async function takePushed(
  db: Queryable,
  id: string,
  { clientId, now }: { clientId: string; now: number },
): Promise<Form | null> {
  const [row] = await db.query<{ parameters: Form }>(sql`
    delete from pushed_request where id = ${id} and client_id = ${clientId} and expires_at > ${now} returning parameters`);
  return row?.parameters ?? null;
}

export const purgePushed = purgeOf({
  table: "pushed_request",
  key: "id",
  time: "expires_at",
  isInclusive: true,
});

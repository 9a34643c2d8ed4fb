import { type Queryable, sql } from "../platform/db.ts";

export interface FamilyRow {
  readonly id: string;
  readonly clientId: string;
  readonly createdAt: number;
  readonly acr: string | null;
}

export interface FamilyPage {
  readonly now: number;
  readonly limit: number;
  readonly after: { readonly createdAt: number; readonly id: string } | null;
}

export async function listFamilies(
  db: Queryable,
  user: string,
  { now, limit, after }: FamilyPage,
): Promise<FamilyRow[]> {
  return db.query<FamilyRow>(sql`
    select id, client_id as "clientId", created_at as "createdAt", acr from token_family
    where user_address = ${user} and revoked_at is null and expires_at > ${now}
      and (${after === null} or (created_at, id) < (${after?.createdAt ?? 0}::bigint, ${after?.id ?? "00000000-0000-0000-0000-000000000000"}::uuid))
    order by created_at desc, id desc limit ${limit}`);
}

/** A live family of this user, without a lock; null when there is none. */
export async function findFamilyOf(
  db: Queryable,
  user: string,
  { id, now }: { id: string; now: number },
): Promise<{ sessionId: string | null } | null> {
  const [row] = await db.query<{ session_id: string | null }>(sql`
    select session_id from token_family
    where id = ${id} and user_address = ${user} and revoked_at is null and expires_at > ${now}`);
  return row === undefined ? null : { sessionId: row.session_id };
}

/** Revokes a family alone. Back-channel logout follows from a session's end. */
export async function revokeFamily(db: Queryable, id: string, now: number): Promise<boolean> {
  const rows = await db.query(sql`
    update token_family set revoked_at = ${now}, revoked_reason = 'ended_by_user', successor_sealed = null
    where id = ${id} and revoked_at is null returning id`);
  return rows.length === 1;
}

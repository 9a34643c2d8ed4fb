import { type Queryable, sql } from "../../platform/database/db.ts";

export interface LoginRow {
  /** Of a token family, or of a session that has none left. */
  readonly id: string;
  readonly clientId: string;
  readonly createdAt: number;
  readonly acr: string | null;
}

export interface LoginListPage {
  readonly now: number;
  readonly accessSeconds: number;
  readonly sessionIdleSeconds: number;
  readonly sessionAbsoluteSeconds: number;
  readonly limit: number;
  readonly after: { readonly createdAt: number; readonly id: string } | null;
}

/**
 * Token families with a good token, and live browser sessions that would answer for a client without such a family: one
 * row for each session, with the newest of those clients.
 */
export async function listLogins(
  db: Queryable,
  user: string,
  { now, limit, after, ...session }: LoginListPage,
): Promise<LoginRow[]> {
  return db.query<LoginRow>(sql`
    with family as (
      select id, client_id, session_id, created_at, acr from token_family
      where user_address = ${user} and revoked_at is null and expires_at > ${now}
        and (refresh_expires_at is null or refresh_expires_at > ${now}
          or coalesce(rotated_at_ms / 1000, created_at) + ${session.accessSeconds} > ${now})),
    login_now as (
      select id, client_id, created_at, acr from family
      union all
      select session.id, without.client_id, session.authenticated_at, session.acr
      from session cross join lateral (
        select approval ->> 'client' as client_id
        from jsonb_array_elements(session.approvals) with ordinality as approved (approval, position)
        where not exists (
          select from family where family.session_id = session.id and family.client_id = approval ->> 'client')
        order by position desc limit 1) as without
      where session.user_address = ${user} and session.ended_at is null
        and session.used_at > ${now - session.sessionIdleSeconds}
        and session.created_at > ${now - session.sessionAbsoluteSeconds})
    select id, client_id as "clientId", created_at as "createdAt", acr from login_now
    where (${after === null} or (created_at, id) < (${after?.createdAt ?? 0}::bigint, ${after?.id ?? "00000000-0000-0000-0000-000000000000"}::uuid))
    order by created_at desc, id desc limit ${limit}`);
}

/** Finds a live login of this user, without a lock. Its session may be null; null when there is no such login. */
export async function findLoginOf(
  db: Queryable,
  user: string,
  { id, now }: { id: string; now: number },
): Promise<{ sessionId: string | null } | null> {
  const [login] = await db.query<{ sessionId: string | null }>(sql`
    select session_id as "sessionId" from token_family
    where id = ${id} and user_address = ${user} and revoked_at is null and expires_at > ${now}
    union all
    select id from session where id = ${id} and user_address = ${user} and ended_at is null`);
  return login ?? null;
}

/** Whether this is a login of the user that has ended, together with its session. */
export async function wasLoginOf(db: Queryable, user: string, id: string): Promise<boolean> {
  const rows = await db.query(sql`
    select from token_family left join session on session.id = session_id
    where token_family.id = ${id} and token_family.user_address = ${user} and (session.id is null or ended_at is not null)
    union all
    select from session where id = ${id} and user_address = ${user} and ended_at is not null`);
  return rows.length > 0;
}

/** Revokes one family. Clients are not told: back-channel logout follows only from a session's end. */
export async function revokeFamily(db: Queryable, id: string, now: number): Promise<boolean> {
  const rows = await db.query(sql`
    update token_family set revoked_at = ${now}, revoked_reason = 'ended_by_user', successor_sealed = null
    where id = ${id} and revoked_at is null returning id`);
  return rows.length === 1;
}

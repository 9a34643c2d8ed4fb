import { type Queryable, sql } from "../../platform/database/db.ts";

/** Ends a session that has not ended. @returns its user, or null */
export async function endSession(
  db: Queryable,
  sessionId: string,
  now: number,
): Promise<string | null> {
  const [row] = await db.query<{ user_address: string }>(sql`
    update session set ended_at = ${now} where id = ${sessionId} and ended_at is null returning user_address`);
  return row?.user_address ?? null;
}

/**
 * Revokes all families of a session. A statement of its own after {@link endSession}: it must see tokens that were
 * issued for a code while that one waited for its lock.
 */
export async function revokeSessionFamilies(
  db: Queryable,
  sessionId: string,
  now: number,
): Promise<void> {
  await db.query(sql`
    update token_family set revoked_at = ${now}, revoked_reason = 'session_ended', successor_sealed = null
    where session_id = ${sessionId} and revoked_at is null`);
}

/** Queues a logout for every client that the user logged in to within the session and that wants to be told. */
export async function insertLogouts(
  db: Queryable,
  session: { id: string; user: string; now: number },
): Promise<void> {
  await db.query(sql`
    with due as (
      insert into logout_delivery (id, client_id, user_address, session_id, due_at, created_at)
      select gen_random_uuid(), client.id, ${session.user}::text, ${session.id}::uuid, ${session.now}::bigint, ${session.now}::bigint
      from oauth_client as client
      where backchannel_logout_uri is not null and disabled_at is null and id in (
        select approval ->> 'client' from session, jsonb_array_elements(approvals) as approval where session.id = ${session.id}
        union select client_id from token_family where session_id = ${session.id})
      returning id)
    select pg_notify('logout', '') from due limit 1`);
}

export async function listOpenSessions(db: Queryable, user: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    select id from session where user_address = ${user} and ended_at is null`);
  return rows.map((row) => row.id);
}

import { type Queryable, sql } from "../platform/database/db.ts";

/**
 * Ends the user's logins that are approved, or wait for other members of a business, and have no code yet.
 *
 * @param opened when a login began that is still open: its index knows no more of it
 * @returns how many
 */
export async function failOpenLogins(
  tx: Queryable,
  user: string,
  opened: { since: number; until: number },
): Promise<number> {
  const rows = await tx.query(sql`
    with failed as (
      update login set status = 'failed', failure = 'declined'
      where claimed_by = ${user} and status in ('gathering', 'approved')
        and created_at between ${opened.since} and ${opened.until}
      returning id)
    select pg_notify('login', id) from failed`);
  return rows.length;
}

/** Ends tokens whose session is over: an offline login outlives it. @returns how many logins that were */
export async function revokeOffline(db: Queryable, user: string, now: number): Promise<number> {
  const rows = await db.query(sql`
    update token_family as family
    set revoked_at = ${now}, revoked_reason = 'ended_by_operator', successor_sealed = null
    where user_address = ${user} and revoked_at is null and expires_at > ${now}
      and not exists (select from session where session.id = family.session_id and ended_at is null)
    returning id`);
  return rows.length;
}

/** Whether an identity has ever logged in. */
export async function isUser(db: Queryable, address: string): Promise<boolean> {
  const rows = await db.query(sql`select from svc_user where address = ${address}`);
  return rows.length === 1;
}

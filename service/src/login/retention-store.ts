import { type Queryable, sql } from "../platform/db.ts";

/** Removes attempts that began before a moment; a live family keeps what it needs itself. @returns how many went */
export async function purgeAttempts(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    delete from login where id in (
      select id from login where created_at < ${before} order by created_at limit ${limit})
    returning id`);
  return rows.length;
}

/**
 * Removes browser sessions that ended or were last used before a moment, with what they remember. One with tokens that
 * can still be refreshed stays: a logout ends them, and tells the client, by the session.
 *
 * @returns how many went
 */
export async function purgeSessions(
  db: Queryable,
  purge: { now: number; before: number; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    delete from session where id in (
      select id from session where (ended_at < ${purge.before} or used_at < ${purge.before})
        and not exists (select from token_family where session_id = session.id and revoked_at is null
          and coalesce(refresh_expires_at, expires_at) > ${purge.now})
      limit ${purge.limit})
    returning id`);
  return rows.length;
}

/** Holds the user's logins that a browser may still finish, for this transaction alone. */
export async function lockOpenLogins(tx: Queryable, user: string): Promise<void> {
  await tx.query(sql`
    select from login where claimed_by = ${user} and status in ('claimed', 'gathering', 'approved') order by id for update`);
}

export async function listOpenSessions(db: Queryable, user: string): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    select id from session where user_address = ${user} and ended_at is null`);
  return rows.map((row) => row.id);
}

/**
 * Removes every row of a user but the audit trail and the logouts that clients are still to be told of, which the purge
 * takes afterwards. False when unknown.
 */
export async function deleteUser(tx: Queryable, user: string): Promise<boolean> {
  await tx.query(sql`
    delete from login where claimed_by = ${user} or request ->> 'expectedUser' = ${user}`);
  // A hint binds nobody: these logins are anybody's.
  await tx.query(sql`
    update login set request = request - 'hintedUser' where request ->> 'hintedUser' = ${user}`);
  await tx.query(sql`
    delete from logout_delivery where user_address = ${user} and ended_at is not null`);
  await tx.query(sql`
    update logout_delivery set is_user_deleted = true where user_address = ${user}`);
  await tx.query(sql`delete from token_family where user_address = ${user}`);
  await tx.query(sql`delete from session where user_address = ${user}`);
  const rows = await tx.query(sql`delete from svc_user where address = ${user} returning address`);
  return rows.length === 1;
}

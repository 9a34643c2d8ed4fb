import { type Queryable, sql } from "../platform/database/db.ts";

/**
 * Locks the user's sign-up, which every approval of the user reads; if there is none, inserts one that makes a first
 * login wait.
 *
 * @returns whether there was one
 */
export async function lockSignUp(tx: Queryable, user: string, now: number): Promise<boolean> {
  // An update waits for whoever is deleting the user, and makes it where that one has; only a new row has no `xmax`.
  const [row] = await tx.query<{ isMade: boolean }>(sql`
    insert into svc_user (address, created_at) values (${user}, ${now})
    on conflict (address) do update set created_at = svc_user.created_at returning xmax = 0 as "isMade"`);
  await tx.query(sql`select from svc_user where address = ${user} for update`);
  return row?.isMade !== true;
}

/**
 * Locks the user's logins that a browser may still finish.
 *
 * @param opened when a login began that is still open: its index knows no more of it
 */
export async function lockOpenLogins(
  tx: Queryable,
  user: string,
  opened: { since: number; until: number },
): Promise<void> {
  await tx.query(sql`
    select from login where claimed_by = ${user} and status in ('claimed', 'gathering', 'approved')
      and created_at between ${opened.since} and ${opened.until} order by id for update`);
}

/**
 * Removes the user's logins that began in this time, in Unix seconds, and takes the user's name out of those of others.
 * Reads all that began in it: an index on users would make every login write it.
 */
export async function deleteLogins(
  tx: Queryable,
  user: string,
  { from, before }: { from: number; before: number },
): Promise<void> {
  // A login hint does not make a login the user's: anybody may answer it.
  await tx.query(sql`
    with named as materialized (
      select id, (claimed_by = ${user} or request ->> 'expectedUser' = ${user}) is true as is_own from login
      where created_at >= ${from} and created_at < ${before}
        and (claimed_by = ${user} or request ->> 'expectedUser' = ${user} or request ->> 'hintedUser' = ${user})),
    deleted as (
      delete from login where id = any(array(select id from named where is_own))
        and (claimed_by = ${user} or request ->> 'expectedUser' = ${user}))
    update login set request = request - 'hintedUser'
    where id = any(array(select id from named where not is_own))`);
}

/**
 * Removes every row of a user but logins, the audit trail and the logouts that clients are still to be told of, which
 * the purge takes afterwards.
 */
export async function deleteUser(tx: Queryable, user: string): Promise<void> {
  await tx.query(sql`
    delete from logout_delivery where user_address = ${user} and ended_at is not null`);
  await tx.query(sql`
    update logout_delivery set is_user_deleted = true where user_address = ${user}`);
  await tx.query(sql`delete from token_family where user_address = ${user}`);
  await tx.query(sql`delete from session where user_address = ${user}`);
  await tx.query(sql`delete from svc_user where address = ${user}`);
}

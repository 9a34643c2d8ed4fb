import { type Queryable, sql } from "../platform/database/db.ts";
import type { OpenWindow } from "./open-window.ts";

/**
 * Locks the user's row, which every approval reads, so that none commits before the deletion. If there is no row,
 * inserts one, which makes a first login wait.
 *
 * @returns whether the user had logged in before
 */
export async function lockSignUp(tx: Queryable, user: string, now: number): Promise<boolean> {
  // `do update` waits for a concurrent deletion of the user, and inserts the row if that one commits. Only an inserted
  // row has `xmax = 0`.
  const [row] = await tx.query<{ isMade: boolean }>(sql`
    insert into svc_user (address, created_at) values (${user}, ${now})
    on conflict (address) do update set created_at = svc_user.created_at returning xmax = 0 as "isMade"`);
  await tx.query(sql`select from svc_user where address = ${user} for update`);
  return row?.isMade !== true;
}

/** Locks the user's logins that a browser may still finish. */
export async function lockOpenLogins(
  tx: Queryable,
  user: string,
  opened: OpenWindow,
): Promise<void> {
  await tx.query(sql`
    select from login where claimed_by = ${user} and status in ('claimed', 'gathering', 'approved')
      and created_at between ${opened.since} and ${opened.until} order by id for update`);
}

/**
 * Removes the user's logins created in this range of Unix seconds, and the user's address from other logins that hint
 * at it. Scans the whole range: an index on users would cost every login a write.
 */
export async function deleteLogins(
  tx: Queryable,
  user: string,
  { from, before }: { from: number; before: number },
): Promise<void> {
  // A login that only hints at the user is not the user's: anybody may have answered it.
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
 * Removes the user's rows outside `login`, except back-channel logouts that are not delivered yet; those are purged
 * after their delivery.
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

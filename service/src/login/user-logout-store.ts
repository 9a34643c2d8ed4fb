import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import type { OpenWindow } from "./open-window.ts";

/**
 * Ends the user's logins that are approved, or wait for other members of a business, and have no code yet.
 *
 * @returns how many
 */
export async function failOpenLogins(
  tx: Queryable,
  user: string,
  opened: OpenWindow,
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

/**
 * Users who are logged in, or whose login is approved or waits for other members, by address.
 *
 * @param page.after an address, or empty; `limit` bounds how many there are
 */
export async function listLoggedIn(
  db: Queryable,
  page: { after: string; limit: number; now: number; opened: OpenWindow },
): Promise<Address[]> {
  const { after, limit, now, opened } = page;
  const rows = await db.query<{ address: Address }>(sql`
    (select distinct user_address as address from session where ended_at is null and user_address > ${after}
      order by user_address limit ${limit})
    union
    (select distinct user_address from token_family
      where revoked_at is null and expires_at > ${now} and user_address > ${after} order by user_address limit ${limit})
    union
    (select distinct claimed_by from login
      where status in ('gathering', 'approved') and created_at between ${opened.since} and ${opened.until}
        and claimed_by > ${after} order by claimed_by limit ${limit})
    order by address limit ${limit}`);
  return rows.map(({ address }) => address);
}

/** Revokes tokens whose session is over, as those of an offline login outlive it. @returns how many families */
export async function revokeOffline(db: Queryable, user: string, now: number): Promise<number> {
  const rows = await db.query(sql`
    update token_family as family
    set revoked_at = ${now}, revoked_reason = 'ended_by_operator', successor_sealed = null
    where user_address = ${user} and revoked_at is null and expires_at > ${now}
      and not exists (select from session where session.id = family.session_id and ended_at is null offset 0)
    returning id`);
  return rows.length;
}

/** Whether an identity has ever logged in. */
export async function isUser(db: Queryable, address: string): Promise<boolean> {
  const rows = await db.query(sql`select from svc_user where address = ${address}`);
  return rows.length === 1;
}

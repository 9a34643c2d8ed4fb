import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";

export interface SubscriptionRow {
  readonly id: string;
  readonly user: Address;
  readonly endpointSha256: Buffer;
  readonly subscriptionSealed: Buffer;
  readonly createdAt: number;
}

/** Stores a subscription, replacing an earlier one to the same address; beyond `most` the oldest are deleted. */
export async function keepSubscription(
  tx: Queryable,
  { id, user, endpointSha256, subscriptionSealed, createdAt }: SubscriptionRow,
  most: number,
): Promise<void> {
  await deleteSubscriptions(tx, { user, endpointSha256 });
  await tx.query(sql`
    insert into push_subscription (id, user_address, endpoint_sha256, subscription_sealed, created_at)
    values (${id}, ${user}, ${endpointSha256}, ${subscriptionSealed}, ${createdAt})
    on conflict do nothing`);
  await tx.query(sql`
    delete from push_subscription where user_address = ${user} and id not in (
      select id from push_subscription where user_address = ${user}
      order by created_at desc, id desc limit ${most})`);
}

/** Deletes one subscription of an identity, or all of them. @returns how many were deleted */
export async function deleteSubscriptions(
  db: Queryable,
  { user, endpointSha256 }: { user: Address; endpointSha256: Buffer | null },
): Promise<number> {
  const rows = await db.query(sql`
    delete from push_subscription
    where user_address = ${user} and (${endpointSha256}::bytea is null or endpoint_sha256 = ${endpointSha256})
    returning 1 as gone`);
  return rows.length;
}

/** Deletes a deleted user's devices, and the record of their hints. @returns how many devices */
export async function deletePushOf(tx: Queryable, user: Address): Promise<number> {
  await tx.query(sql`delete from push_sent where member = ${user}`);
  return deleteSubscriptions(tx, { user, endpointSha256: null });
}

/** Deletes a subscription that the push service no longer knows. */
export async function deleteSubscription(db: Queryable, id: string): Promise<void> {
  await db.query(sql`delete from push_subscription where id = ${id}`);
}

/**
 * Deletes the devices of one page that subscribed before a given time and whose identity is in no business, so that
 * they would never get a hint.
 *
 * @returns the last id of the page, after which the next page begins; null if there was none
 */
export async function purgeIdle(
  db: Queryable,
  purge: { before: number; after: string; limit: number },
): Promise<string | null> {
  const [last] = await db.query<{ id: string }>(sql`
    with page as materialized (
      select id, user_address from push_subscription
      where id > ${purge.after} and created_at < ${purge.before} order by id limit ${purge.limit}),
    gone as (
      delete from push_subscription where id = any(array(
        select id from page where not exists (select from business_member where member = user_address))))
    select id from page order by id desc limit 1`);
  return last?.id ?? null;
}

/** A hint that goes to one device. */
export interface DueHint {
  readonly id: string;
  /** The business that the hint is about; of several, any. */
  readonly business: Address;
  readonly subscriptionSealed: Buffer;
}

/** A business about which a hint may have to be sent. */
export interface HintSource {
  /** Null for a new device whose user is in no business. */
  readonly business: Address | null;
  /**
   * True for a vote, an invitation or a device that is examined for the first time; false for a removal or a move,
   * which are examined each time.
   */
  readonly isNew: boolean;
}

/**
 * Marks votes, invitations and devices as examined that have not been examined yet; those that are just being changed
 * are left for later. Call it in the transaction that takes the hints, so that nothing is marked without its hints
 * being taken.
 *
 * @param most of each kind
 */
export async function markExamined(tx: Queryable, most: number): Promise<HintSource[]> {
  return tx.query<HintSource>(sql`
    with votes as (
      select id, business from ballot where status = 'open' and hinted_epoch is distinct from epoch
      order by id limit ${most} for no key update skip locked),
    invitations as (
      select address from business where status = 'inviting' and not is_invitation_hinted
      order by address limit ${most} for no key update skip locked),
    devices as (
      select id, user_address from push_subscription where is_new
      order by id limit ${most} for no key update skip locked),
    marked_votes as (
      update ballot set hinted_epoch = epoch where id = any(array(select id from votes))),
    marked_invitations as (
      update business set is_invitation_hinted = true
      where address = any(array(select address from invitations))),
    marked_devices as (
      update push_subscription set is_new = false where id = any(array(select id from devices)))
    select business, true as "isNew" from votes
    union select address, true from invitations
    union select m.business, true
      from devices left join lateral (
        select business from business_member where member = user_address offset 0) as m on true
    union select business, false from business_removal where answered_at is null
    union select business, false from business_move`);
}

/**
 * Takes the hints that members of these businesses have not yet had on their devices. Each is recorded as sent in the
 * same statement, so only one of several processes takes it, once. Each `offset 0` keeps PostgreSQL from reading everything
 * that is open, or all hints that were sent.
 */
export async function takeDueHints(
  tx: Queryable,
  { now, businesses }: { now: number; businesses: readonly Address[] },
): Promise<DueHint[]> {
  return tx.query<DueHint>(sql`
    with due as (
      select subject, member, looked.address as business
      from unnest(${[...businesses]}::text[]) as looked (address) cross join lateral (
        select n.subject, n.member from push_notice n
        where n.business = looked.address and n.ends_at > ${now}
          and exists (select 1 from push_subscription p where p.user_address = n.member offset 0)
          and not exists (
            select 1 from push_sent s where s.subject = n.subject and s.member = n.member offset 0)
        offset 0) as told
      order by subject, member),
    taken as (
      insert into push_sent (subject, member, created_at)
      select subject, member, ${now} from due
      on conflict do nothing returning subject, member)
    select p.id, told.business, p.subscription_sealed as "subscriptionSealed"
      from (select member, min(business) as business from taken join due using (subject, member) group by member) as told
      cross join lateral (
        select id, subscription_sealed from push_subscription where user_address = told.member offset 0) as p`);
}

/**
 * Deletes the record of hints that were sent before `before`, Unix seconds, unless what they announced still waits: a
 * hint without a record would be sent again. `offset 0` makes PostgreSQL search what waits in the member's businesses;
 * otherwise each record would be compared with all that waits anywhere.
 *
 * @returns how many were deleted
 */
export async function deleteSentHints(
  db: Queryable,
  before: number,
  limit: number,
): Promise<number> {
  const rows = await db.query(sql`
    delete from push_sent where ctid = any(array(
      select s.ctid from push_sent s where created_at < ${before}
        and not exists (
          select 1 from business_member m cross join lateral (
            select 1 from push_notice n
            where n.business = m.business and n.member = m.member and n.subject = s.subject offset 0) as kept
          where m.member = s.member offset 0)
      order by created_at limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}

import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/db.ts";

export interface SubscriptionRow {
  readonly id: string;
  readonly user: Address;
  readonly endpointSha256: Buffer;
  readonly subscriptionSealed: Buffer;
  readonly createdAt: number;
}

/** Keeps a subscription in place of an earlier one to the same address; of more than `most` the oldest go. */
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

/** One of an identity, or all of them. */
export async function deleteSubscriptions(
  db: Queryable,
  { user, endpointSha256 }: { user: Address; endpointSha256: Buffer | null },
): Promise<void> {
  await db.query(sql`
    delete from push_subscription
    where user_address = ${user} and (${endpointSha256}::bytea is null or endpoint_sha256 = ${endpointSha256})`);
}

/** A deleted user's devices, and what they were told. */
export async function deletePushOf(tx: Queryable, user: Address): Promise<void> {
  await deleteSubscriptions(tx, { user, endpointSha256: null });
  await tx.query(sql`delete from push_sent where member = ${user}`);
}

/** One that the push service no longer knows. */
export async function deleteSubscription(db: Queryable, id: string): Promise<void> {
  await db.query(sql`delete from push_subscription where id = ${id}`);
}

/** A hint that goes to one device. */
export interface DueHint {
  readonly id: string;
  readonly subscriptionSealed: Buffer;
  /** Until when it is worth telling, Unix seconds. */
  readonly endsAt: number;
}

/**
 * Takes what members with devices were not told yet: noted as sent in the same statement, so of several processes one
 * takes each, and none twice. @param most members and subjects in one go
 */
export async function takeDueHints(
  db: Queryable,
  { now, most }: { now: number; most: number },
): Promise<DueHint[]> {
  return db.query<DueHint>(sql`
    with due as (
      select n.subject, n.member, n.ends_at from push_notice n
      where n.ends_at > ${now}
        and n.member in (select user_address from push_subscription)
        and not exists (
          select 1 from push_sent s where s.subject = n.subject and s.member = n.member)
      limit ${most}),
    taken as (
      insert into push_sent (subject, member, created_at)
      select subject, member, ${now} from due
      on conflict do nothing returning subject, member)
    select p.id, p.subscription_sealed as "subscriptionSealed", max(d.ends_at) as "endsAt"
      from taken t
      join due d on d.subject = t.subject and d.member = t.member
      join push_subscription p on p.user_address = t.member
      group by p.id, p.subscription_sealed`);
}

export async function deleteSentHints(db: Queryable, before: number): Promise<void> {
  await db.query(sql`
    delete from push_sent s where created_at < ${before}
      and not exists (select 1 from push_notice n where n.subject = s.subject and n.member = s.member)`);
}

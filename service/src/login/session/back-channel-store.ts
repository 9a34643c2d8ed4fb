import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";

/** A logout to deliver to a client, leased for one try. */
export interface LogoutDelivery {
  readonly id: string;
  readonly clientId: string;
  /** The client's. */
  readonly organizationId: string;
  readonly user: Address;
  readonly sessionId: string | null;
  /** When the login ended. */
  readonly createdAt: number;
  /** This try included. Also the fencing token: a process that holds an older count has lost its lease. */
  readonly attempts: number;
}

export interface Lease {
  readonly now: number;
  readonly seconds: number;
  readonly limit: number;
  /** At most this many of one client, those included that this process has under way. */
  readonly perClient: number;
  /** How many this process has under way, by client. */
  readonly underWay: Readonly<Record<string, number>>;
  /** Their clients get nothing more for now. */
  readonly fullOrganizations: readonly string[];
}

/**
 * Leases deliveries that are due, from one client after the other, so that a long queue of one hides no other. Two
 * processes never hold the same one while its lease runs.
 *
 * Where rows are found by id, here and below, `true` is passed as a value: for a plain `ended_at is null`, a plan that
 * was made while nothing waited would read all that wait.
 */
export async function leaseDeliveries(db: Queryable, lease: Lease): Promise<LogoutDelivery[]> {
  return db.query<LogoutDelivery>(sql`
    with recursive client as (
      (select client_id as id from logout_delivery where ended_at is null order by client_id limit 1)
      union all
      select (select client_id from logout_delivery where ended_at is null and client_id > client.id order by client_id limit 1)
      from client where client.id is not null),
    due as (
      select waiting.id from client join oauth_client on oauth_client.id = client.id
        join client_domain on client_domain.id = client_domain_id and organization_id <> all(${lease.fullOrganizations}::uuid[])
      cross join lateral (
        select id, due_at from logout_delivery
        where client_id = client.id and ended_at is null and due_at <= ${lease.now}
          and (leased_until is null or leased_until <= ${lease.now})
        order by due_at
        limit greatest(0, ${lease.perClient}::int - coalesce((${JSON.stringify(lease.underWay)}::jsonb ->> client.id)::int, 0))
      ) as waiting
      order by waiting.due_at limit ${lease.limit}),
    taken as (
      select id from logout_delivery where id = any(array(select id from due)) and (ended_at is null) = ${true}
        and (leased_until is null or leased_until <= ${lease.now})
      for update skip locked)
    update logout_delivery set attempts = attempts + 1, leased_until = ${lease.now + lease.seconds}
    where id = any(array(select id from taken))
    returning id, client_id as "clientId", user_address as user, session_id as "sessionId", created_at as "createdAt", attempts,
      (select organization_id from oauth_client join client_domain on client_domain.id = client_domain_id
        where oauth_client.id = client_id) as "organizationId"`);
}

/** Ends a delivery, unless its lease was lost. */
export async function endDelivery(
  db: Queryable,
  delivery: LogoutDelivery,
  { outcome, now }: { outcome: string; now: number },
): Promise<void> {
  await db.query(sql`
    update logout_delivery set ended_at = ${now}, outcome = ${outcome}, leased_until = null
    where id = ${delivery.id} and attempts = ${delivery.attempts} and (ended_at is null) = ${true}`);
}

/** Plans the next try of a delivery, unless its lease was lost. */
export async function postponeDelivery(
  db: Queryable,
  delivery: LogoutDelivery,
  dueAt: number,
): Promise<void> {
  await db.query(sql`
    update logout_delivery set due_at = ${dueAt}, leased_until = null
    where id = ${delivery.id} and attempts = ${delivery.attempts} and (ended_at is null) = ${true}`);
}

/**
 * Removes deliveries that ended before a moment, and every ended one of a deleted user.
 *
 * @returns how many were removed; fewer than `limit` means that none is left
 */
export async function purgeDeliveries(
  db: Queryable,
  before: number,
  limit: number,
): Promise<number> {
  const rows = await db.query(sql`
    delete from logout_delivery where id = any(array(
      (select id from logout_delivery where ended_at < ${before} limit ${limit})
      union all
      (select id from logout_delivery where is_user_deleted and ended_at is not null limit ${limit})))
    returning id`);
  return rows.length;
}

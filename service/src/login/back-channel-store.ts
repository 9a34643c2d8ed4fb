import { type Queryable, sql } from "../platform/db.ts";

/** A logout that a client has to be told of, taken for one try. */
export interface LogoutDelivery {
  readonly id: string;
  readonly clientId: string;
  readonly user: string;
  readonly sessionId: string | null;
  /** This try included; also the fence: who holds an older count has lost its lease. */
  readonly attempts: number;
}

/** Takes deliveries that are due; two processes never take the same one while its lease runs. */
export async function leaseDeliveries(
  db: Queryable,
  lease: { now: number; seconds: number; limit: number },
): Promise<LogoutDelivery[]> {
  return db.query<LogoutDelivery>(sql`
    update logout_delivery set attempts = attempts + 1, leased_until = ${lease.now + lease.seconds}
    where id in (
      select id from logout_delivery
      where ended_at is null and due_at <= ${lease.now} and (leased_until is null or leased_until <= ${lease.now})
      order by due_at limit ${lease.limit} for update skip locked)
    returning id, client_id as "clientId", user_address as user, session_id as "sessionId", attempts`);
}

export async function endDelivery(
  db: Queryable,
  delivery: LogoutDelivery,
  { outcome, now }: { outcome: string; now: number },
): Promise<void> {
  await db.query(sql`
    update logout_delivery set ended_at = ${now}, outcome = ${outcome}, leased_until = null
    where id = ${delivery.id} and attempts = ${delivery.attempts} and ended_at is null`);
}

export async function postponeDelivery(
  db: Queryable,
  delivery: LogoutDelivery,
  dueAt: number,
): Promise<void> {
  await db.query(sql`
    update logout_delivery set due_at = ${dueAt}, leased_until = null
    where id = ${delivery.id} and attempts = ${delivery.attempts} and ended_at is null`);
}

export async function purgeDeliveries(db: Queryable, before: number): Promise<void> {
  await db.query(sql`delete from logout_delivery where ended_at < ${before}`);
}

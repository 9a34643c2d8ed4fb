import { columns, type Queryable, sql } from "../platform/database/db.ts";
import type { Endpoint } from "./endpoint.ts";
import type { SecretRow } from "./endpoint-secret.ts";
import type { Health } from "./quarantine.ts";

const endpointColumns = columns`
  url, secret_version as "secretVersion", is_active as active, created_at as "createdAt"`;

/** The channel on which {@link wakeReconciling} notifies. */
export const heldChannel = "webhook_held";

/** Registers or replaces an endpoint and raises its secret version. If it leaves a quarantine, it resumes slowly. */
export async function saveEndpoint(
  tx: Queryable,
  given: { id: string; clientDomainId: string; url: string; now: number },
): Promise<Endpoint> {
  const [endpoint] = await tx.query<Endpoint>(sql`
    insert into kyb_endpoint as e (id, client_domain_id, url, secret_version, created_at)
    values (${given.id}, ${given.clientDomainId}, ${given.url}, 1, ${given.now})
    on conflict (id) do update set url = excluded.url, secret_version = e.secret_version + 1, is_active = true,
      is_resuming = e.is_resuming or not e.is_active, resets = e.resets + 1,
      resumed_at_ms = case when e.is_active then e.resumed_at_ms else ${given.now * 1000}::bigint end,
      failures = 0, failing_since_ms = null, refusals = 0, refused_since_ms = null
    returning ${endpointColumns}`);
  if (endpoint === undefined) throw new Error("the endpoint was not saved");
  return endpoint;
}

export async function findEndpoint(tx: Queryable, id: string): Promise<Endpoint | null> {
  const [endpoint] = await tx.query<Endpoint>(sql`
    select ${endpointColumns} from kyb_endpoint where id = ${id}`);
  return endpoint ?? null;
}

/** Takes the next secret version; null if there is no endpoint. */
export async function raiseSecretVersion(tx: Queryable, id: string): Promise<Endpoint | null> {
  const [endpoint] = await tx.query<Endpoint>(sql`
    update kyb_endpoint set secret_version = secret_version + 1 where id = ${id}
    returning ${endpointColumns}`);
  return endpoint ?? null;
}

/** Ends a quarantine; null if the endpoint is in none or does not exist. */
export async function reactivate(tx: Queryable, id: string, now: number): Promise<Endpoint | null> {
  const [endpoint] = await tx.query<Endpoint>(sql`
    update kyb_endpoint set is_active = true, is_resuming = true, resets = resets + 1, resumed_at_ms = ${now * 1000},
      failures = 0, failing_since_ms = null, refusals = 0, refused_since_ms = null
    where id = ${id} and not is_active returning ${endpointColumns}`);
  return endpoint ?? null;
}

/** Takes the sequence number of the next test event; null if there is no endpoint. */
export async function raiseTestSequence(tx: Queryable, id: string): Promise<number | null> {
  const [row] = await tx.query<{ test_sequence: number }>(sql`
    update kyb_endpoint set test_sequence = test_sequence + 1 where id = ${id} returning test_sequence`);
  return row?.test_sequence ?? null;
}

/** Makes this the only secret. */
export async function replaceSecrets(tx: Queryable, id: string, row: SecretRow): Promise<void> {
  await tx.query(sql`delete from kyb_endpoint_secret where endpoint_id = ${id}`);
  await insertSecret(tx, id, row);
}

/** Inserts a new secret; the previous one ends at `oldExpiresAt` (Unix seconds), the one before that now. */
export async function rotateSecrets(
  tx: Queryable,
  id: string,
  { row, oldExpiresAt }: { row: SecretRow; oldExpiresAt: number },
): Promise<void> {
  await tx.query(sql`
    with ended as (delete from kyb_endpoint_secret where endpoint_id = ${id} and expires_at is not null)
    update kyb_endpoint_secret set expires_at = ${oldExpiresAt} where endpoint_id = ${id} and expires_at is null`);
  await insertSecret(tx, id, row);
}

async function insertSecret(tx: Queryable, id: string, row: SecretRow): Promise<void> {
  await tx.query(sql`
    insert into kyb_endpoint_secret (id, endpoint_id, version, secret_sealed)
    values (${row.id}, ${id}, ${row.version}, ${row.secretSealed})`);
}

/**
 * Makes deliveries held for an active endpoint due, the oldest events first, each on a new run of the schedule. Has to
 * be a later statement than the one that made the endpoint active: only then it sees everything that was held until
 * then.
 *
 * @returns how many it released, at most the limit
 */
export async function releaseHeld(
  tx: Queryable,
  id: string,
  { nowMs, limit }: { nowMs: number; limit: number },
): Promise<number> {
  const [row] = await tx.query<{ count: number }>(sql`
    with endpoint as materialized (select id from kyb_endpoint where id = ${id} and is_active for no key update),
    batch as materialized (
      select event_id from webhook_delivery
      where endpoint_id = ${id} and is_held and lease is null and exists (select from endpoint)
      order by event_id limit ${limit} for update skip locked),
    released as (
      update webhook_delivery d set is_held = false, step = 0, due_at_ms = least(e.created_at * 1000, ${Math.floor(nowMs)}::bigint)
      from webhook_event e
      where d.event_id = any(array(select event_id from batch)) and e.id = d.event_id
      returning d.event_id)
    select count(*) as count, pg_notify('webhook_delivery', '') from released`);
  return row?.count ?? 0;
}

/** Wakes the job that holds and releases deliveries, once the transaction commits. */
export async function wakeReconciling(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_notify(${heldChannel}, '')`);
}

/** Ids of endpoints in quarantine with deliveries not held yet, and of active ones with deliveries still held. */
export async function listUnreconciled(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    with recursive holding as (
      (select endpoint_id as id from webhook_delivery where is_held order by endpoint_id limit 1)
      union all
      select following.endpoint_id from holding cross join lateral (
        select endpoint_id from webhook_delivery where is_held and endpoint_id > holding.id
        order by endpoint_id limit 1) as following)
    select k.id from holding join kyb_endpoint k on k.id = holding.id where k.is_active
    union all
    select k.id from kyb_endpoint k where not k.is_active and exists (
      select from webhook_delivery d where d.endpoint_id = k.id and d.lease is null and not d.is_held)`);
  return rows.map(({ id }) => id);
}

/** Where an endpoint's events go now, and the secrets that sign them. */
export interface TargetRow {
  readonly id: string;
  readonly url: string;
  readonly isActive: boolean;
  /** How often its owner has replaced or reactivated it. */
  readonly resets: number;
  readonly secrets: readonly SecretRow[];
}

/** Those of these endpoints that exist. */
export async function listTargets(db: Queryable, ids: readonly string[]): Promise<TargetRow[]> {
  const rows = await db.query<
    Omit<TargetRow, "secrets"> & Omit<SecretRow, "id"> & { secretId: string }
  >(sql`
    select e.id, e.url, e.is_active as "isActive", e.resets, s.id as "secretId", s.version,
      s.secret_sealed as "secretSealed", s.expires_at as "expiresAt"
    from kyb_endpoint e join kyb_endpoint_secret s on s.endpoint_id = e.id
    where e.id = any(${ids}::uuid[])`);
  return [...Map.groupBy(rows, ({ id }) => id).values()].flatMap((group) => {
    const [first] = group;
    if (first === undefined) return [];
    const { id, url, isActive, resets } = first;
    const secrets = group.map(({ secretId, version, secretSealed, expiresAt }) => ({
      id: secretId,
      version,
      secretSealed,
      expiresAt,
    }));
    return [{ id, url, isActive, resets, secrets }];
  });
}

/** Events of a client domain without an endpoint wait this long until they are looked at again. */
const absentMs = 600_000;

/**
 * Gives back claimed deliveries whose endpoint is in quarantine or does not exist, and holds further ones that wait for
 * an endpoint in quarantine. Locks the endpoints, so that nothing is held after a reactivation has released it.
 *
 * @param most at most how many further ones are held
 */
export async function holdDeliveries(
  db: Queryable,
  given: readonly { eventId: string; endpointId: string; lease: string }[],
  { nowMs, most }: { nowMs: number; most: number },
): Promise<void> {
  const atMs = Math.floor(nowMs);
  const endpointIds = [...new Set(given.map(({ endpointId }) => endpointId))];
  await db.query(sql`
    with endpoint as materialized (
      select id, is_active from kyb_endpoint where id = any(${endpointIds}::uuid[]) order by id for no key update),
    quarantined as (select id from endpoint where not is_active),
    batch as materialized (
      select event_id from webhook_delivery
      where endpoint_id = any(array(select id from quarantined)) and lease is null and not is_held
      limit ${most} for update skip locked),
    parked as (
      update webhook_delivery set is_held = true where event_id = any(array(select event_id from batch)))
    update webhook_delivery d set lease = null, step = greatest(d.step, 0),
      is_held = d.endpoint_id = any(array(select id from quarantined)),
      due_at_ms = case when d.endpoint_id = any(array(select id from endpoint))
        then coalesce(case when d.step = 0 then held_due_at(d.endpoint_id, d.event_id) end, ${atMs}::bigint)
        else ${atMs + absentMs}::bigint end
    from unnest(${given.map((each) => each.eventId)}::text[], ${given.map((each) => each.lease)}::uuid[])
      as g (event_id, lease)
    where d.event_id = g.event_id and d.lease = g.lease`);
}

/**
 * Holds deliveries that wait for an endpoint in quarantine, those due first before the rest. Attempts under way are
 * held when they end.
 *
 * @returns how many it held, at most the limit
 */
export async function holdWaiting(db: Queryable, id: string, limit: number): Promise<number> {
  const rows = await db.query(sql`
    with endpoint as materialized (select id from kyb_endpoint where id = ${id} and not is_active for no key update),
    batch as materialized (
      select event_id from webhook_delivery
      where endpoint_id = ${id} and lease is null and not is_held and exists (select from endpoint)
      order by due_at_ms, event_id limit ${limit} for update skip locked)
    update webhook_delivery set is_held = true where event_id = any(array(select event_id from batch))
    returning event_id`);
  return rows.length;
}

/** The health of an endpoint since its owner last replaced or reactivated it. */
interface KnownHealth {
  readonly id: string;
  readonly resets: number;
  readonly health: Health;
}

/** The health of those of these endpoints that exist, locked by id. */
export async function lockHealth(tx: Queryable, ids: readonly string[]): Promise<KnownHealth[]> {
  const rows = await tx.query<Health & Pick<KnownHealth, "id" | "resets">>(sql`
    select id, resets, is_active as "isActive", is_resuming as "isResuming", failures,
      failing_since_ms as "failingSinceMs", refusals, refused_since_ms as "refusedSinceMs"
    from kyb_endpoint where id = any(${ids}::uuid[]) order by id for no key update`);
  return rows.map(({ id, resets, ...health }) => ({ id, resets, health }));
}

export async function saveHealth(
  tx: Queryable,
  rows: readonly { id: string; health: Health }[],
): Promise<void> {
  const of = <T>(pick: (health: Health) => T): T[] => rows.map(({ health }) => pick(health));
  await tx.query(sql`
    update kyb_endpoint k set is_active = g.is_active, is_resuming = g.is_resuming, failures = g.failures,
      failing_since_ms = g.failing_since_ms, refusals = g.refusals, refused_since_ms = g.refused_since_ms
    from unnest(${rows.map(({ id }) => id)}::uuid[], ${of((each) => each.isActive)}::boolean[],
      ${of((each) => each.isResuming)}::boolean[], ${of((each) => each.failures)}::int[],
      ${of((each) => each.failingSinceMs)}::bigint[], ${of((each) => each.refusals)}::int[],
      ${of((each) => each.refusedSinceMs)}::bigint[])
      as g (id, is_active, is_resuming, failures, failing_since_ms, refusals, refused_since_ms)
    where k.id = g.id`);
}

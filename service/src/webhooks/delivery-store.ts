import { type Queryable, sql, type Statement } from "../platform/database/db.ts";
import type { Channel } from "./event.ts";
import type { OutcomeName } from "./schedule.ts";

/** Between attempts at one endpoint: 50 a second, or 5 after a quarantine until the first 2xx. */
const intervalMs = 20;
const resumingIntervalMs = 200;

/** A pace that reaches further into the future was written by a process with a wrong clock, and is ignored. */
export const paceMsMax = 10_000;

/**
 * The step of a delivery that was to be sent again while an attempt was under way: if that attempt fails, even the last
 * one, the schedule begins anew. Processes of an earlier version do not reset it when they end a lease, so claims treat
 * it as 0.
 */
export const resentStep = -1;

/** Sorts before the id of every endpoint. */
export const firstEndpoint = "00000000-0000-0000-0000-000000000000";

/** What one claim may take, and where it begins. */
export interface Claim {
  readonly nowMs: number;
  readonly lease: string;
  readonly leasedUntilMs: number;
  /** The most deliveries it takes. */
  readonly limit: number;
  /** The claim looks at the endpoints after this one, at most `endpointsMax` of them. */
  readonly after: string;
  readonly endpointsMax: number;
  /** The most deliveries under way to one endpoint, by all processes together. */
  readonly slots: number;
  /** Endpoints that get one delivery at a time. */
  readonly slow: readonly string[];
  /** Client domains whose deliveries are left out. */
  readonly fullDomains: readonly string[];
  /** The most deliveries with large bodies that it takes. */
  readonly largeMax: number;
  /** Client domains whose large bodies are left out. */
  readonly fullOfLarge: readonly string[];
}

/** A delivery that this process has claimed. */
export interface Delivery {
  readonly eventId: string;
  readonly endpointId: string;
  readonly clientDomainId: string;
  readonly channel: Channel;
  /** Null for KYB, as is `url`: the endpoint has secrets and URL. */
  readonly keyId: string | null;
  readonly url: string | null;
  readonly body: string | null;
  readonly bodySealed: Buffer | null;
  readonly purgeAt: number | null;
  readonly isLarge: boolean;
  /** Attempts made before. */
  readonly attempts: number;
  /** How many of them were made in this run of the schedule. */
  readonly step: number;
  /** The earliest start that keeps the pace of the endpoint. */
  readonly startAtMs: number;
}

export interface Claimed {
  /** False if nothing was due, or another process was claiming at the same time; then nothing was taken. */
  readonly hasTurn: boolean;
  /** Deliveries that were due, counted up to one more than the limit. */
  readonly due: number;
  /** How many endpoints were looked at, and the last of them. */
  readonly scanned: number;
  readonly lastEndpoint: string | null;
  readonly deliveries: readonly Delivery[];
}

type ClaimRow = Omit<Delivery, "eventId" | "startAtMs"> & {
  readonly eventId: string | null;
  readonly nextAtMs: number | null;
  readonly intervalMs: number | null;
  readonly dueAtMs: number | null;
  readonly hasTurn: boolean;
  readonly due: number;
  readonly scanned: number;
  readonly lastEndpoint: string | null;
};

/**
 * Claims deliveries that are due, endpoint by endpoint, so that a long queue at one endpoint delays no other. Of a
 * stream's untried events only the first is taken, and events that were held for an endpoint are sent oldest first: the
 * SQL functions that ensure this are explained in `migrations/0053_endpoint_resumed.sql`. The row `webhook_turn` lets
 * only one claim run at a time, since each claim counts what the others have under way.
 *
 * Since all processes wait for a claim, it must read each endpoint's queue from its beginning and only as far as there
 * is room. Two things in the text make PostgreSQL do that. `waiting.endpoint_id >= ..` together with the row comparison
 * fits only the index by endpoint and due time; the index of everything that is due requires the condition `due_at_ms
 * >= 0`. And the other conditions are wrapped in `case .. is not null`, because of which PostgreSQL expects nearly all
 * rows to meet them: if it expected few, it would read and sort the whole queue.
 */
export async function claim(db: Queryable, given: Claim): Promise<Claimed> {
  const rows = await db.query<ClaimRow>(await plannedForSize(db, claimStatement(given)));
  return claimedOf(rows, given.nowMs);
}

function claimStatement(given: Claim): Statement {
  const { nowMs, slots, limit } = given;
  return sql`
    with recursive turn as (
      update webhook_turn set version = version + 1 where version = (select version from webhook_turn)
        and (select min(due_at_ms) from webhook_delivery where lease is null and not is_held and due_at_ms >= 0) <= ${nowMs}
      returning version),
    endpoint as (
      (select first.endpoint_id as id, first.client_domain_id as domain, 1 as position from turn cross join lateral (
        select endpoint_id, client_domain_id from webhook_delivery where lease is null and not is_held and endpoint_id > ${given.after}::uuid
        order by endpoint_id limit 1) as first)
      union all
      select following.endpoint_id, following.client_domain_id, e.position + 1 from endpoint e cross join lateral (
        select endpoint_id, client_domain_id from webhook_delivery where lease is null and not is_held and endpoint_id > e.id
        order by endpoint_id limit 1) as following
      where e.position < ${given.endpointsMax}),
    offered as (
      select e.position, pace.interval_ms, d.event_id, d.is_large, d.due_at_ms
      from endpoint e
      left join lateral (select next_at_ms from webhook_endpoint where id = e.id offset 0) as known on true left join kyb_endpoint k on k.id = e.id
      cross join lateral (select case when known.next_at_ms between ${nowMs}::bigint and ${nowMs + paceMsMax}::bigint
          then known.next_at_ms else ${nowMs}::bigint end as from_ms,
        case when k.is_resuming then ${resumingIntervalMs}::int else ${intervalMs}::int end as interval_ms) as pace
      cross join lateral (
        select case when e.domain = any(${given.fullDomains}::uuid[]) then 0 when e.id = any(${given.slow}::uuid[]) then 1
          else ${slots}::int end - count(*) as free
        from webhook_delivery busy where busy.endpoint_id = e.id and busy.lease is not null) as room
      left join barred_delivery(e.id, k.resumed_at_ms, ${slots}) as barred on true
      cross join lateral (select waiting.event_id, waiting.is_large, waiting.due_at_ms from webhook_delivery waiting
        where waiting.endpoint_id >= e.id and (waiting.endpoint_id, waiting.due_at_ms) <= (e.id, ${nowMs}::bigint)
          and waiting.lease is null and not waiting.is_held and case
            when ((waiting.due_at_ms, waiting.event_id) < (barred.due_at_ms, barred.event_id)) is not false
            and (not waiting.is_large or (${given.largeMax}::int > 0 and waiting.client_domain_id <> all(${given.fullOfLarge}::uuid[])))
            and (waiting.step > 0 or not exists (
              select from webhook_delivery earlier where earlier.stream_id = waiting.stream_id
                and earlier.sequence < waiting.sequence and earlier.step = 0 and not earlier.is_held)) then true end is not null
        order by waiting.endpoint_id, waiting.due_at_ms, waiting.event_id
        limit greatest(0, least(room.free,
          ${slots}::int - (pace.from_ms - ${nowMs}::bigint + pace.interval_ms - 1) / pace.interval_ms))) as d
      order by e.position limit ${limit}),
    picked as (
      select event_id, interval_ms, due_at_ms from (
        select *, count(*) filter (where is_large) over (order by position, due_at_ms, event_id) as large
        from offered) as counted
      where not is_large or large <= ${given.largeMax}),
    taken as (
      update webhook_delivery d set lease = ${given.lease}, due_at_ms = ${given.leasedUntilMs}, step = greatest(d.step, 0)
      where d.event_id = any(array(select event_id from picked)) and d.lease is null
      returning d.event_id, d.endpoint_id, d.client_domain_id, d.is_large, d.step),
    paced as (
      insert into webhook_endpoint as e (id, next_at_ms)
      select endpoint_id, ${nowMs}::bigint + sum(interval_ms) from taken join picked using (event_id) group by endpoint_id
      on conflict (id) do update set next_at_ms = excluded.next_at_ms
          + case when e.next_at_ms <= ${nowMs + paceMsMax}::bigint then greatest(0, e.next_at_ms - ${nowMs}::bigint) else 0 end)
    select scan.has_turn as "hasTurn", scan.due, scan.scanned, scan.last_endpoint as "lastEndpoint",
      taken.event_id as "eventId", taken.endpoint_id as "endpointId", taken.client_domain_id as "clientDomainId",
      taken.is_large as "isLarge", taken.step, e.channel, e.key_id as "keyId", e.url, e.body,
      e.body_sealed as "bodySealed", e.purge_at as "purgeAt", e.attempts,
      case when pace.next_at_ms <= ${nowMs + paceMsMax}::bigint then pace.next_at_ms end as "nextAtMs",
      chosen.interval_ms as "intervalMs", chosen.due_at_ms as "dueAtMs"
    from (select exists (select from turn) as has_turn, (select count(*) from endpoint) as scanned,
        (select id from endpoint order by position desc limit 1) as last_endpoint,
        (select count(*) from (
          select from webhook_delivery where lease is null and not is_held and due_at_ms between 0 and ${nowMs}
          order by due_at_ms limit ${limit + 1}) as due_now) as due) as scan
    left join (taken join picked chosen using (event_id) cross join lateral (
        select channel, key_id, url, body, body_sealed, purge_at, attempts from webhook_event
        where id = taken.event_id offset 0) as e
      left join lateral (select next_at_ms from webhook_endpoint where id = taken.endpoint_id offset 0) as pace on true) on true`;
}

/**
 * Gives the statement a name that depends on the sizes, in powers of four, of the tables that it reads, so that it is
 * planned again when they have grown: a plan that was made for an empty queue would scan a full one over and over, and
 * planning at each run would take three times as long as the statement itself. Plans also depend on the statistics of
 * ANALYZE, which may say that a table is empty; therefore the statement above never leaves the order of a join with the
 * queue or the paces to the planner.
 */
async function plannedForSize(db: Queryable, statement: Statement): Promise<Statement> {
  const sizes = await db.query<{ pages: number }>(sql`
    select pg_relation_size(name) / current_setting('block_size')::int as pages
    from unnest(array['webhook_delivery', 'webhook_event', 'webhook_endpoint', 'kyb_endpoint']::regclass[]) as name`);
  const powers = sizes.map(({ pages }) => Math.ceil(Math.log2(Math.max(1, pages)) / 2));
  return { ...statement, name: `${statement.name}_${powers.join("_")}` };
}

function claimedOf(rows: readonly ClaimRow[], nowMs: number): Claimed {
  const [first] = rows;
  const places = new Map<string, number>();
  const deliveries: Delivery[] = [];
  for (const row of rows.toSorted(byDueTime)) {
    const { eventId, endpointId } = row;
    if (eventId === null) continue;
    const place = places.get(endpointId) ?? 0;
    places.set(endpointId, place + 1);
    const fromMs = Math.max(row.nextAtMs ?? 0, nowMs);
    const startAtMs = fromMs + place * (row.intervalMs ?? intervalMs);
    deliveries.push({ ...row, eventId, startAtMs });
  }
  return {
    hasTurn: first?.hasTurn ?? false,
    due: first?.due ?? 0,
    scanned: first?.scanned ?? 0,
    lastEndpoint: first?.lastEndpoint ?? null,
    deliveries,
  };
}

/** By due time; events due at the same time by id, which begins with the time at which it was made. */
function byDueTime(a: ClaimRow, b: ClaimRow): number {
  const beforeMs = (a.dueAtMs ?? 0) - (b.dueAtMs ?? 0);
  if (beforeMs !== 0) return beforeMs;
  return (a.eventId ?? "") < (b.eventId ?? "") ? -1 : 1;
}

/** Whether any delivery is due. */
export async function hasDue(db: Queryable, nowMs: number): Promise<boolean> {
  const rows = await db.query(
    sql`select from webhook_delivery where lease is null and not is_held and due_at_ms between 0 and ${nowMs}
      order by due_at_ms limit 1`,
  );
  return rows.length > 0;
}

/** How an attempt ended. */
export interface Ended {
  readonly eventId: string;
  readonly lease: string;
  /** Null when no attempt was made because the body was purged. */
  readonly outcome: OutcomeName | null;
  readonly number: number;
  readonly status: number | null;
  readonly begunAtMs: number;
  readonly durationMs: number;
  readonly answerSealed: Buffer | null;
  /** When a 2xx came, Unix seconds; null without one. */
  readonly deliveredAt: number | null;
  /** When the next attempt is due; null if there is none. */
  readonly dueAtMs: number | null;
  /** The endpoint whose health this attempt affects; null for KYC, which has no quarantine. */
  readonly kybEndpointId: string | null;
  /** How often its owner had reset it when the attempt was made. */
  readonly kybEndpointResets: number | null;
}

/** A process that was suspended past its lease may have claimed the same event twice: only the later attempt counts. */
function newestOfEach(ended: readonly Ended[]): Ended[] {
  const newest = new Map<string, Ended>();
  for (const each of ended) {
    const known = newest.get(each.eventId);
    if (known === undefined || known.begunAtMs <= each.begunAtMs) newest.set(each.eventId, each);
  }
  return [...newest.values()];
}

/**
 * Records the ends of any number of attempts in one statement. An attempt whose lease was lost is ignored, since
 * another process makes it again.
 *
 * @param times.keptUntil Unix seconds: bodies without personal data are kept at least until then
 * @returns whether any of the deliveries is due again at once
 */
export async function finish(
  db: Queryable,
  given: readonly Ended[],
  times: { nowMs: number; deliveredDataSeconds: number; keptUntil: number },
): Promise<boolean> {
  const ended = newestOfEach(given);
  const of = <T>(pick: (each: Ended) => T): T[] => ended.map(pick);
  const byId = (pick: (each: Ended) => string | number | null): string =>
    JSON.stringify(Object.fromEntries(ended.map((each) => [each.eventId, pick(each)])));
  const leases = byId((each) => each.lease);
  const dues = byId((each) => each.dueAtMs);
  const deliveries = byId((each) => each.deliveredAt);
  const [again, over] = [ended.filter(hasNext), ended.filter((each) => !hasNext(each))];
  const givenUp = over.filter(
    ({ outcome, deliveredAt }) => outcome !== null && deliveredAt === null,
  );
  const [againIds, overIds, givenUpIds] = [again, over, givenUp].map((some) =>
    some.map((each) => each.eventId),
  );
  const statement = sql`
    with given as (
      select * from unnest(${of((each) => each.eventId)}::text[], ${of((each) => each.outcome)}::text[],
        ${of((each) => each.number)}::int[], ${of((each) => each.status)}::int[],
        ${of((each) => each.begunAtMs)}::bigint[], ${of((each) => each.durationMs)}::int[],
        ${of((each) => each.answerSealed)}::bytea[])
        as g (event_id, outcome, number, status, begun_at_ms, duration_ms, answer_sealed)),
    over as (
      delete from webhook_delivery d
      where d.event_id = any(${overIds}::text[]) and d.lease = (${leases}::jsonb ->> d.event_id)::uuid
      returning d.*),
    anew as (
      insert into webhook_delivery (event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, due_at_ms)
      select event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, ${times.nowMs}::bigint
      from over where step = ${resentStep} and event_id = any(${givenUpIds}::text[]) returning event_id),
    again as (
      update webhook_delivery d set step = d.step + 1, lease = null,
        due_at_ms = case when d.step = ${resentStep} then ${times.nowMs}::bigint
          else (${dues}::jsonb ->> d.event_id)::bigint end
      where d.event_id = any(${againIds}::text[]) and d.lease = (${leases}::jsonb ->> d.event_id)::uuid
      returning d.event_id, d.due_at_ms),
    made as (
      select g.* from given g
      where g.outcome is not null and g.event_id in (select event_id from over union all select event_id from again)),
    kept as (
      insert into webhook_attempt (id, number, begun_at_ms, duration_ms, outcome, status, answer_sealed)
      select event_id || '.' || number, number, begun_at_ms, duration_ms, outcome, status, answer_sealed from made),
    counted as (
      update webhook_event e set attempts = e.attempts + 1,
        delivered_at = coalesce(e.delivered_at, (${deliveries}::jsonb ->> e.id)::bigint),
        purge_at = case when e.is_personal and e.channel = 'kyc' and e.purge_at is not null
          then least(e.purge_at, (${deliveries}::jsonb ->> e.id)::bigint + ${times.deliveredDataSeconds}::bigint)
          when not e.is_personal and e.purge_at is not null then greatest(e.purge_at, ${times.keptUntil}::bigint)
          else e.purge_at end
      where e.id = any(array(select event_id from made)))
    select 1 as due from anew union all select 1 from again where due_at_ms <= ${times.nowMs}`;
  return (await db.query(await plannedForSize(db, statement))).length > 0;
}

/** Restarts the schedule of these deliveries, if no attempt is under way. */
export async function restart(tx: Queryable, eventIds: readonly string[]): Promise<void> {
  await tx.query(sql`
    update webhook_delivery set step = 0 where event_id = any(${eventIds}::text[]) and lease is null`);
}

function hasNext({ dueAtMs }: Ended): boolean {
  return dueAtMs !== null;
}

/** Gives back deliveries that were claimed and not tried. They are due at once; formerly held ones keep their place. */
export async function release(
  db: Queryable,
  given: readonly { eventId: string; lease: string }[],
  nowMs: number,
): Promise<void> {
  await db.query(sql`
    update webhook_delivery d set lease = null, step = greatest(d.step, 0),
      due_at_ms = coalesce(case when d.step = 0 then held_due_at(d.endpoint_id, d.event_id) end, ${nowMs}::bigint)
    from unnest(${given.map((each) => each.eventId)}::text[], ${given.map((each) => each.lease)}::uuid[])
      as g (event_id, lease)
    where d.event_id = g.event_id and d.lease = g.lease`);
}

/** Frees deliveries whose lease has ended: the process that claimed them died or hangs. */
export async function endLeases(db: Queryable, nowMs: number): Promise<void> {
  await db.query(sql`
    update webhook_delivery d set lease = null, step = greatest(d.step, 0),
      due_at_ms = coalesce(case when d.step = 0 then held_due_at(d.endpoint_id, d.event_id) end, d.due_at_ms)
    where d.lease is not null and d.due_at_ms <= ${nowMs}`);
}

/** How many deliveries wait or are under way, and when the oldest of them was due. Held ones do not count. */
export async function readBacklog(
  db: Queryable,
): Promise<{ count: number; oldestDueAtMs: number | null }> {
  const [row] = await db.query<{ count: number; oldest: number | null }>(
    // One index covers waiting deliveries, another those under way; neither covers held ones.
    sql`select waiting.count + leased.count as count, least(waiting.oldest, leased.oldest) as oldest
      from (select count(*) as count, min(due_at_ms) as oldest from webhook_delivery
        where lease is null and not is_held and due_at_ms >= 0) as waiting,
        (select count(*) as count, min(due_at_ms) as oldest from webhook_delivery where lease is not null) as leased`,
  );
  return { count: row?.count ?? 0, oldestDueAtMs: row?.oldest ?? null };
}

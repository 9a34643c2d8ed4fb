import { type Queryable, sql } from "../platform/database/db.ts";
import { lastUlid } from "../platform/ids.ts";
import { resentStep } from "./delivery-store.ts";
import { type AnnouncedEvent, type Channel, largeBytes } from "./event.ts";

export interface EventRow extends Omit<AnnouncedEvent, "body" | "payloadExpiresAt"> {
  readonly channel: Channel;
  /** Null for KYB, as is `url`: the endpoint has secrets and URL. */
  readonly keyId: string | null;
  readonly url: string | null;
  readonly endpointId: string;
  readonly body: string | null;
  readonly bodySealed: Buffer | null;
  readonly isLarge: boolean;
  readonly purgeAt: number;
}

/** Inserts events with their deliveries, due at once; the senders are woken when the transaction commits. */
export async function insertEvents(
  tx: Queryable,
  rows: readonly EventRow[],
  nowMs: number,
): Promise<void> {
  const dueAtMs = Math.floor(nowMs);
  await tx.query(sql`
    with given as (
      select * from unnest(${rows.map((row) => row.id)}::text[], ${rows.map((row) => row.streamId)}::text[],
        ${rows.map((row) => row.sequence)}::int[], ${rows.map((row) => row.channel)}::text[],
        ${rows.map((row) => row.kind)}::text[], ${rows.map((row) => row.clientDomainId)}::uuid[],
        ${rows.map((row) => row.keyId)}::text[], ${rows.map((row) => row.url)}::text[],
        ${rows.map((row) => row.body)}::text[], ${rows.map((row) => row.bodySealed)}::bytea[],
        ${rows.map((row) => row.isPersonal)}::boolean[], ${rows.map((row) => row.purgeAt)}::bigint[],
        ${rows.map((row) => row.endpointId)}::uuid[], ${rows.map((row) => row.isLarge)}::boolean[])
        as g (id, stream_id, sequence, channel, kind, client_domain_id, key_id, url, body, body_sealed, is_personal,
          purge_at, endpoint_id, is_large)),
    announced as (
      insert into webhook_event (id, stream_id, sequence, channel, kind, client_domain_id, key_id, url, body,
        body_sealed, is_personal, created_at, purge_at)
      select id, stream_id, sequence, channel, kind, client_domain_id, key_id, url, body, body_sealed, is_personal,
        ${Math.floor(dueAtMs / 1000)}, purge_at
      from given),
    queued as (
      insert into webhook_delivery (event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, due_at_ms)
      select id, endpoint_id, client_domain_id, stream_id, sequence, is_large, ${dueAtMs}::bigint from given)
    select pg_notify('webhook_delivery', '')`);
}

export interface ListedRow {
  readonly id: string;
  readonly sequence: number;
  readonly kind: string;
  readonly createdAt: number;
  readonly deliveredAt: number | null;
  readonly attempts: number;
  readonly dueAtMs: number | null;
  readonly purgeAt: number | null;
  readonly body: string | null;
  readonly bodySealed: Buffer | null;
  /** How many events there are from the start of the page on, counted up to the limit. */
  readonly found: number;
}

/** The next events that fit into `bytesMax`, at least one. `octet_length` does not read the other bodies. */
export async function listEvents(
  db: Queryable,
  streamId: string,
  { after, limit, bytesMax }: { after: number; limit: number; bytesMax: number },
): Promise<ListedRow[]> {
  return db.query<ListedRow>(sql`
    with next as (
      select id, sequence, octet_length(coalesce(body, '')) + octet_length(coalesce(body_sealed, '')) as bytes
      from webhook_event where stream_id = ${streamId} and sequence > ${after} order by sequence limit ${limit}),
    page as (
      select id, sum(bytes) over (order by sequence) as bytes_so_far, row_number() over (order by sequence) as place
      from next)
    select e.id, e.sequence, e.kind, e.created_at as "createdAt", e.delivered_at as "deliveredAt", e.attempts,
      e.purge_at as "purgeAt", e.body, e.body_sealed as "bodySealed",
      case when d.is_held then null else d.due_at_ms end as "dueAtMs", (select count(*) from next) as found
    from page join webhook_event e on e.id = page.id left join webhook_delivery d on d.event_id = e.id
    where page.place = 1 or page.bytes_so_far <= ${bytesMax} order by e.sequence`);
}

/** An event of a list over many streams. */
export interface PlacedRow extends ListedRow {
  readonly streamId: string;
}

/** Which events of a client domain's KYB endpoint to list. */
export interface EventFilter {
  readonly clientDomainId: string;
  readonly kinds: readonly string[];
  /** Null for both. */
  readonly isDelivered: boolean | null;
}

/**
 * The newest events that fit into `bytesMax`, at least one, newest first. Each kind is read by an index of its own
 * range and only as far as the limit: a single scan for all would read everything where the wanted kinds are rare.
 */
export async function listKybEvents(
  db: Queryable,
  { clientDomainId, kinds, isDelivered }: EventFilter,
  page: { before: string | null; limit: number; bytesMax: number },
): Promise<PlacedRow[]> {
  const { before, limit, bytesMax } = { ...page, before: page.before ?? lastUlid };
  const standings = isDelivered === null ? [true, false] : [isDelivered];
  return db.query<PlacedRow>(sql`
    with next as (
      select id, bytes
      from unnest(${[...kinds]}::text[]) as wanted (kind)
        cross join unnest(${standings}::boolean[]) as standing (is_delivered)
        cross join lateral (
          select id, octet_length(coalesce(body, '')) + octet_length(coalesce(body_sealed, '')) as bytes
          from webhook_event
          where channel = 'kyb' and client_domain_id = ${clientDomainId} and kind = wanted.kind
            and (delivered_at is not null) = standing.is_delivered and id < ${before}
          order by id desc limit ${limit}) as newest
      order by id desc limit ${limit}),
    page as (
      select id, sum(bytes) over (order by id desc) as bytes_so_far, row_number() over (order by id desc) as place,
        count(*) over () as found
      from next)
    select e.id, e.stream_id as "streamId", e.sequence, e.kind, e.created_at as "createdAt",
      e.delivered_at as "deliveredAt", e.attempts, e.purge_at as "purgeAt", e.body, e.body_sealed as "bodySealed",
      case when d.is_held then null else d.due_at_ms end as "dueAtMs", page.found
    from page join webhook_event e on e.id = page.id left join webhook_delivery d on d.event_id = e.id
    where page.place = 1 or page.bytes_so_far <= ${bytesMax} order by e.id desc`);
}

/** Stream, sequence and kind of an event of a client domain's KYB endpoint. */
export async function findKybEvent(
  db: Queryable,
  of: { id: string; clientDomainId: string },
): Promise<{ streamId: string; sequence: number; kind: string } | null> {
  const [row] = await db.query<{ streamId: string; sequence: number; kind: string }>(sql`
    select stream_id as "streamId", sequence, kind from webhook_event
    where id = ${of.id} and channel = 'kyb' and client_domain_id = ${of.clientDomainId}`);
  return row ?? null;
}

export interface AttemptRow {
  readonly eventId: string;
  readonly sequence: number;
  readonly kind: string;
  readonly number: number;
  readonly begunAtMs: number;
  readonly durationMs: number;
  readonly outcome: string;
  readonly status: number | null;
}

/** Attempts at a stream's events, by sequence and number; without `afterAttempt`, none at the event `after`. */
export async function listAttempts(
  db: Queryable,
  streamId: string,
  { after, afterAttempt, limit }: { after: number; afterAttempt: number | null; limit: number },
): Promise<AttemptRow[]> {
  return db.query<AttemptRow>(sql`
    select e.id as "eventId", e.sequence, e.kind, a.number, a.begun_at_ms as "begunAtMs",
      a.duration_ms as "durationMs", a.outcome, a.status
    from webhook_event e join webhook_attempt a on a.id > e.id || '.' and a.id < e.id || '/'
    where e.stream_id = ${streamId} and e.sequence >= ${after}
      and (e.sequence > ${after} or a.number > ${afterAttempt}::int)
    order by e.sequence, a.number limit ${limit}`);
}

interface ResendableRow {
  readonly id: string;
  readonly channel: Channel;
  readonly clientDomainId: string;
  /** Null for KYB. */
  readonly url: string | null;
  readonly isPersonal: boolean;
  readonly isSendable: boolean;
}

/**
 * Locks the remaining deliveries of a stream. Call it before locking the events: the recording of an attempt locks in
 * that order too, so the reverse could deadlock with it.
 */
export async function lockDeliveries(
  tx: Queryable,
  of: { streamId: string; eventId: string | null },
): Promise<void> {
  await tx.query(sql`
    select from webhook_delivery
    where event_id = any(array(
      select event_id from webhook_delivery
      where stream_id = ${of.streamId} and (${of.eventId}::text is null or event_id = ${of.eventId})))
    order by event_id for update`);
}

/** The events to send again, locked so that their bodies are not purged; by id, so that no two calls deadlock. */
export async function listResendable(
  tx: Queryable,
  of: { streamId: string; eventId: string | null; now: number },
): Promise<ResendableRow[]> {
  return tx.query<ResendableRow>(sql`
    select id, channel, client_domain_id as "clientDomainId", url, is_personal as "isPersonal",
      coalesce(purge_at > ${of.now}, false) as "isSendable"
    from webhook_event
    where stream_id = ${of.streamId} and (${of.eventId}::text is null or id = ${of.eventId})
    order by id for no key update`);
}

/**
 * Makes events due now at the given URLs, on a new run of the schedule. If an attempt is under way, that run begins
 * once it has failed (see {@link resentStep}); if it is the first of its run, nothing has to be noted for that.
 */
export async function requeueEvents(
  tx: Queryable,
  rows: readonly { id: string; url: string | null; endpointId: string }[],
  nowMs: number,
): Promise<void> {
  const dueAtMs = Math.floor(nowMs);
  await tx.query(sql`
    with given as (
      select * from unnest(${rows.map((row) => row.id)}::text[], ${rows.map((row) => row.url)}::text[],
        ${rows.map((row) => row.endpointId)}::uuid[]) as g (id, url, endpoint_id)),
    moved as (
      update webhook_event e set url = g.url from given g where e.id = g.id and e.url <> g.url),
    queued as (
      insert into webhook_delivery as d
        (event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, due_at_ms)
      select e.id, g.endpoint_id, e.client_domain_id, e.stream_id, e.sequence,
        octet_length(coalesce(e.body, '')) + octet_length(coalesce(e.body_sealed, '')) > ${largeBytes}, ${dueAtMs}::bigint
      from given g join webhook_event e on e.id = g.id order by e.sequence
      on conflict (event_id) do update set
        due_at_ms = case when d.lease is null then excluded.due_at_ms else d.due_at_ms end,
        step = case when d.lease is null then 0 else ${resentStep}::int end
      where d.lease is null or d.step > 0)
    select pg_notify('webhook_delivery', '')`);
}

/**
 * Restarts the remaining deliveries of a stream at another URL, except those with personal data. The rows are deleted
 * and inserted again instead of updated: a claim that has read the old URL and waits for a row then finds it gone.
 */
export async function moveEvents(
  tx: Queryable,
  to: { streamId: string; url: string; endpointId: string },
  nowMs: number,
): Promise<void> {
  await tx.query(sql`
    with left_behind as (
      delete from webhook_delivery d
      where stream_id = ${to.streamId}
        and (select not is_personal from webhook_event where id = d.event_id)
      returning event_id, client_domain_id, stream_id, sequence, is_large),
    moved as (
      update webhook_event set url = ${to.url} where id = any(array(select event_id from left_behind))),
    queued as (
      insert into webhook_delivery (event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, due_at_ms)
      select event_id, ${to.endpointId}::uuid, client_domain_id, stream_id, sequence, is_large,
        ${Math.floor(nowMs)}::bigint
      from left_behind returning event_id)
    select pg_notify('webhook_delivery', '') where exists (select from queued)`);
}

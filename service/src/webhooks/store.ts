import { type Queryable, sql } from "../platform/db.ts";
import type { NewEvent } from "./event.ts";

type EventRow = Omit<NewEvent, "body"> & {
  readonly body: string | null;
  readonly bodySealed: Buffer | null;
  readonly endpoint: Buffer;
};

/** PostgreSQL reads an array of bytes from texts that begin with `\x`. */
const bytea = (bytes: Buffer | null): string | null =>
  bytes === null ? null : `\\x${bytes.toString("hex")}`;

export async function insertEvents(
  tx: Queryable,
  rows: readonly EventRow[],
  now: number,
): Promise<void> {
  const of = <T>(pick: (row: EventRow) => T): T[] => rows.map(pick);
  await tx.query(
    sql`with written as (
        insert into webhook_event (id, stream_id, sequence, kind, channel, client_domain_id, key_id, url, endpoint,
          body, body_sealed, is_personal, payload_expires_at, created_at, due_at)
        select id, stream_id, sequence, kind, channel, client_domain_id, key_id, url, endpoint, body, body_sealed,
          is_personal, payload_expires_at, ${now}::bigint, ${now}::bigint
        from unnest(${of((row) => row.id)}::text[], ${of((row) => row.streamId)}::uuid[],
          ${of((row) => row.sequence)}::integer[], ${of((row) => row.kind)}::text[],
          ${of((row) => row.channel)}::text[], ${of((row) => row.clientDomainId)}::uuid[],
          ${of((row) => row.keyId)}::uuid[], ${of((row) => row.url)}::text[],
          ${of((row) => bytea(row.endpoint))}::bytea[], ${of((row) => row.body)}::text[],
          ${of((row) => bytea(row.bodySealed))}::bytea[], ${of((row) => row.isPersonal)}::boolean[],
          ${of((row) => row.payloadExpiresAt)}::bigint[])
          as given (id, stream_id, sequence, kind, channel, client_domain_id, key_id, url, endpoint, body, body_sealed,
            is_personal, payload_expires_at)
      )
      select pg_notify('webhooks', '')`,
  );
}

/** An event that this process now tries. */
export interface Claimed {
  readonly id: string;
  readonly channel: NewEvent["channel"];
  readonly kind: string;
  readonly key_id: string;
  readonly url: string;
  readonly endpoint: Buffer;
  readonly body: string | null;
  readonly body_sealed: Buffer | null;
  readonly is_personal: boolean;
  readonly payload_expires_at: number | null;
  readonly attempts: number;
  readonly round_attempts: number;
}

/**
 * Takes what is due: at most so many for each endpoint, counting those that other processes have under way, and of each
 * stream only its first untried event. One process takes at a time, so the count is right.
 */
export async function claimDue(
  db: Queryable,
  given: {
    now: number;
    leaseId: string;
    leasedUntil: number;
    limit: number;
    perEndpoint: number;
    /** Endpoints that this process may give nothing more now. */
    except: readonly Buffer[];
  },
): Promise<Claimed[]> {
  return db.query<Claimed>(
    sql`with candidate as (
        select event.id, event.endpoint, event.due_at
        from webhook_event as event
        where event.due_at <= ${given.now} and (event.leased_until is null or event.leased_until <= ${given.now})
          and event.endpoint <> all(${given.except.map((each) => bytea(each))}::bytea[])
          and (event.attempts > 0 or not exists (
            select 1 from webhook_event as earlier
            where earlier.stream_id = event.stream_id and earlier.sequence < event.sequence
              and earlier.attempts = 0 and earlier.due_at is not null
          ))
          and pg_try_advisory_xact_lock(hashtext('webhooks-claim'))
        order by event.due_at limit ${given.limit}
      ), ranked as (
        select id, row_number() over (partition by endpoint order by due_at, id) + (
            select count(*) from webhook_event as busy
            where busy.endpoint = candidate.endpoint and busy.leased_until > ${given.now}
          ) as place
        from candidate
      ), taken as (
        select webhook_event.id from webhook_event join ranked on ranked.id = webhook_event.id
        where ranked.place <= ${given.perEndpoint}
        for update of webhook_event skip locked
      )
      update webhook_event set lease_id = ${given.leaseId}, leased_until = ${given.leasedUntil}
      from taken where webhook_event.id = taken.id
      returning webhook_event.id, channel, kind, key_id, url, endpoint, body, body_sealed, is_personal,
        payload_expires_at, attempts, round_attempts`,
  );
}

/** What came of a try. */
export interface Finished {
  readonly id: string;
  readonly leaseId: string;
  readonly attemptId: string;
  readonly at: number;
  readonly durationMs: number;
  readonly status: number | null;
  readonly responseSealed: Buffer | null;
  readonly isDelivered: boolean;
  /** Null where it was the last. */
  readonly nextAt: number | null;
}

/** Purge of a personal body after the receiver has it. */
const deliveredPayloadSeconds = 86_400;

/** Ends tries and writes their log, any number in one statement; one whose lease was lost changes nothing. */
export async function finishAttempts(db: Queryable, done: readonly Finished[]): Promise<void> {
  const of = <T>(pick: (each: Finished) => T): T[] => done.map(pick);
  await db.query(
    sql`with given as (
        select * from unnest(${of((each) => each.id)}::text[], ${of((each) => each.leaseId)}::uuid[],
          ${of((each) => each.attemptId)}::uuid[], ${of((each) => each.at)}::bigint[],
          ${of((each) => each.durationMs)}::integer[], ${of((each) => each.status)}::integer[],
          ${of((each) => bytea(each.responseSealed))}::bytea[], ${of((each) => each.isDelivered)}::boolean[],
          ${of((each) => each.nextAt)}::bigint[])
          as given (id, lease_id, attempt_id, at, duration_ms, status, response_sealed, is_delivered, next_at)
      ), ended as (
        update webhook_event set attempts = attempts + 1, round_attempts = round_attempts + 1, lease_id = null,
          leased_until = null, due_at = case when given.is_delivered then null else given.next_at end,
          delivered_at = case when given.is_delivered then coalesce(delivered_at, given.at) else delivered_at end,
          ended_at = case when given.is_delivered or given.next_at is null then given.at end,
          payload_expires_at = case when given.is_delivered
            then least(payload_expires_at, given.at + ${deliveredPayloadSeconds}) else payload_expires_at end
        from given where webhook_event.id = given.id and webhook_event.lease_id = given.lease_id
        returning webhook_event.id, attempts
      )
      insert into webhook_attempt (id, event_id, attempt, at, duration_ms, status, response_sealed)
      select attempt_id, given.id, ended.attempts, at, duration_ms, status, response_sealed
      from given join ended on ended.id = given.id`,
  );
}

/** Takes the bodies whose time is over; the events stay as tombstones. @returns how many */
export async function purgePayloads(db: Queryable, now: number, limit: number): Promise<number> {
  const rows = await db.query(
    sql`with expired as (
        select id from webhook_event where body_sealed is not null and payload_expires_at <= ${now}
        limit ${limit} for update skip locked
      ), emptied as (
        update webhook_event set body_sealed = null, due_at = null, ended_at = coalesce(ended_at, ${now})
        from expired where webhook_event.id = expired.id returning webhook_event.id
      ), forgotten as (
        update webhook_attempt set response_sealed = null from emptied where event_id = emptied.id
      )
      select id from emptied`,
  );
  return rows.length;
}

export async function deleteEnded(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(
    sql`delete from webhook_event where id in (
        select id from webhook_event where ended_at < ${before} order by ended_at limit ${limit} for update skip locked
      ) returning id`,
  );
  return rows.length;
}

export async function deleteAttempts(db: Queryable, before: number): Promise<void> {
  await db.query(sql`delete from webhook_attempt where at < ${before}`);
}

/** An event as its receiver's owner sees it. */
export interface ListedEvent {
  readonly id: string;
  readonly sequence: number;
  readonly kind: string;
  readonly createdAt: number;
  readonly deliveredAt: number | null;
  readonly attempts: number;
  readonly nextAttemptAt: number | null;
  readonly body: string | null;
  readonly bodySealed: Buffer | null;
}

export async function listEvents(
  db: Queryable,
  streamId: string,
  page: { after: number; limit: number },
): Promise<ListedEvent[]> {
  const rows = await db.query<{
    id: string;
    sequence: number;
    kind: string;
    created_at: number;
    delivered_at: number | null;
    attempts: number;
    due_at: number | null;
    body: string | null;
    body_sealed: Buffer | null;
  }>(
    sql`select id, sequence, kind, created_at, delivered_at, attempts, due_at, body, body_sealed
      from webhook_event where stream_id = ${streamId} and sequence > ${page.after}
      order by sequence limit ${page.limit}`,
  );
  return rows.map((row) => ({
    id: row.id,
    sequence: row.sequence,
    kind: row.kind,
    createdAt: row.created_at,
    deliveredAt: row.delivered_at,
    attempts: row.attempts,
    nextAttemptAt: row.due_at,
    body: row.body,
    bodySealed: row.body_sealed,
  }));
}

/** Sends events of a stream again from the start of the schedule. @returns what there was, and which of it is sent */
export async function resend(
  db: Queryable,
  given: { streamId: string; eventId: string | null; now: number },
): Promise<{ found: number; sent: number }> {
  const [row] = await db.query<{ found: number; sent: number }>(
    sql`with asked as (
        select id, body is not null or body_sealed is not null as has_body from webhook_event
        where stream_id = ${given.streamId} and (${given.eventId}::text is null or id = ${given.eventId})
      ), sent as (
        update webhook_event set due_at = ${given.now}, round_attempts = 0, ended_at = null
        from asked where webhook_event.id = asked.id and has_body returning webhook_event.id
      ), told as (select pg_notify('webhooks', ''))
      select (select count(*) from asked)::integer as found, (select count(*) from sent)::integer as sent,
        (select count(*) from told)::integer as told`,
  );
  return { found: row?.found ?? 0, sent: row?.sent ?? 0 };
}

/** Events that wait, and since when the oldest of them is due. */
export async function readBacklog(
  db: Queryable,
): Promise<{ count: number; oldestDueAt: number | null }> {
  const [row] = await db.query<{ count: number; oldest: number | null }>(
    sql`select count(*)::integer as count, min(due_at) as oldest from webhook_event where due_at is not null`,
  );
  return { count: row?.count ?? 0, oldestDueAt: row?.oldest ?? null };
}

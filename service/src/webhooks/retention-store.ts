import { type Queryable, sql } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";

/** Events whose bodies are due to be purged. */
export async function listExpired(
  db: Queryable,
  { now, limit }: { now: number; limit: number },
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(sql`
    select id from webhook_event where purge_at <= ${now} order by purge_at limit ${limit}`);
  return rows.map(({ id }) => id);
}

/**
 * Purges those of these bodies that are due for it, with the answers of receivers. Deliveries are locked before events,
 * as by the recording of attempts, so that the two cannot deadlock.
 *
 * Attempts are found by complete ids instead of a range: since few of them still have an answer, PostgreSQL would read
 * all of those and look for the range among them.
 */
export async function emptyExpired(
  tx: Queryable,
  { ids, now }: { ids: readonly string[]; now: number },
): Promise<void> {
  await tx.query(sql`
    select from webhook_delivery where event_id = any(${ids}::text[]) order by event_id for update`);
  await tx.query(sql`
    with expired as (
      select id from webhook_event where id = any(${ids}::text[]) and purge_at <= ${now} order by id for no key update),
    emptied as (
      update webhook_event e set body = null, body_sealed = null, purge_at = null
      from expired where e.id = expired.id returning e.id, e.attempts),
    dropped as (delete from webhook_delivery where event_id = any(array(select id from emptied)))
    update webhook_attempt set answer_sealed = null
    where answer_sealed is not null and id = any(array(
      select emptied.id || '.' || number from emptied cross join generate_series(1, attempts) as number))`);
}

/** Deletes those of these events that belong to forgotten streams and have no body any more, with their attempts. */
export async function deleteForgotten(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(sql`
    with gone as (
      delete from webhook_event where id = any(${ids}::text[]) and is_forgotten and purge_at is null
      returning id, attempts)
    delete from webhook_attempt where id = any(array(
      select gone.id || '.' || number from gone cross join generate_series(1, attempts) as number))`);
}

/**
 * Deletes the events of these streams with their attempts, except those without personal data that are still to be
 * delivered. Deliveries are locked before events, as by the recording of attempts, so that the two cannot deadlock.
 */
export async function deleteStreams(tx: Queryable, streamIds: readonly string[]): Promise<void> {
  await tx.query(sql`
    select from webhook_delivery
    where event_id = any(array(select event_id from webhook_delivery where stream_id = any(${streamIds}::text[])))
    order by event_id for update`);
  await tx.query(sql`
    with gone as (
      delete from webhook_event e
      where stream_id = any(${streamIds}::text[])
        and (is_personal or not exists (select from webhook_delivery d where d.event_id = e.id offset 0))
      returning e.id, e.attempts),
    dropped as (delete from webhook_delivery where event_id = any(array(select id from gone)))
    delete from webhook_attempt where id = any(array(
      select gone.id || '.' || number from gone cross join generate_series(1, attempts) as number))`);
}

/** The unsealed bodies that these streams still have, locked. */
export async function listBodies(
  tx: Queryable,
  streamIds: readonly string[],
): Promise<{ id: string; body: string }[]> {
  return tx.query<{ id: string; body: string }>(sql`
    select id, body from webhook_event where stream_id = any(${streamIds}::text[]) and body is not null
    order by id for no key update`);
}

/** Replaces bodies by sealed ones, and has the events deleted when these are purged, at `purgeAt` at the latest. */
export async function markForgotten(
  tx: Queryable,
  sealed: readonly { id: string; bodySealed: Buffer }[],
  purgeAt: number,
): Promise<void> {
  await tx.query(sql`
    update webhook_event e set is_forgotten = true, is_personal = true, body = null, body_sealed = given.body_sealed,
      purge_at = least(e.purge_at, ${purgeAt})
    from unnest(${sealed.map(({ id }) => id)}::text[], ${sealed.map(({ bodySealed }) => bodySealed)}::bytea[])
      as given (id, body_sealed)
    where e.id = given.id`);
}

export const deleteAttempts = purgeOf({ table: "webhook_attempt", key: "id", time: "begun_at_ms" });

/** Deletes events without a body whose ids lie in this range. */
export async function deleteTombstones(
  db: Queryable,
  { from, before, limit }: { from: string; before: string; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    delete from webhook_event where id = any(array(
      select id from webhook_event where id >= ${from} and id < ${before} and purge_at is null order by id limit ${limit}
      for update skip locked))
    returning id`);
  return rows.length;
}

/**
 * Deletes the paces on one page of those endpoints to which nothing was sent since `beforeMs`.
 *
 * @returns the last id of the page, after which the next page begins; null if there was none
 */
export async function purgePaces(
  db: Queryable,
  purge: { beforeMs: number; after: string; limit: number },
): Promise<string | null> {
  const [last] = await db.query<{ id: string }>(sql`
    with page as materialized (
      select id, next_at_ms from webhook_endpoint where id > ${purge.after} order by id limit ${purge.limit}),
    gone as (
      delete from webhook_endpoint
      where id = any(array(select id from page where next_at_ms < ${purge.beforeMs})) and next_at_ms < ${purge.beforeMs})
    select id from page order by id desc limit 1`);
  return last?.id ?? null;
}

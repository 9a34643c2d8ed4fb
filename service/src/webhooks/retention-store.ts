import { type Queryable, sql } from "../platform/database/db.ts";

/** Takes bodies whose time is over, with the keys that sealed them and what receivers answered; returns how many. */
export async function purgeBodies(
  db: Queryable,
  { now, limit }: { now: number; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    with expired as (
      select id from webhook_event where purge_at <= ${now} order by purge_at limit ${limit}
      for no key update skip locked),
    emptied as (
      update webhook_event e set body = null, body_sealed = null, purge_at = null
      from expired where e.id = expired.id returning e.id),
    dropped as (delete from webhook_delivery d using emptied where d.event_id = emptied.id),
    forgotten as (
      update webhook_attempt a set answer_sealed = null from emptied
      where a.id > emptied.id || '.' and a.id < emptied.id || '/' and a.answer_sealed is not null)
    select id from emptied`);
  return rows.length;
}

/**
 * Takes the bodies of these streams, with what receivers answered: personal ones at once, others where nothing is still
 * to be delivered.
 */
export async function forgetStreams(db: Queryable, streamIds: readonly string[]): Promise<void> {
  await db.query(sql`
    with emptied as (
      update webhook_event e set body = null, body_sealed = null, purge_at = null
      where stream_id = any(${streamIds}::text[]) and purge_at is not null
        and (is_personal or not exists (select from webhook_delivery d where d.event_id = e.id))
      returning e.id),
    dropped as (delete from webhook_delivery d using emptied where d.event_id = emptied.id)
    update webhook_attempt a set answer_sealed = null from emptied
    where a.id > emptied.id || '.' and a.id < emptied.id || '/' and a.answer_sealed is not null`);
}

export async function deleteAttempts(
  db: Queryable,
  { beforeMs, limit }: { beforeMs: number; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    delete from webhook_attempt where id in (
      select id from webhook_attempt where begun_at_ms < ${beforeMs} order by begun_at_ms limit ${limit}
      for update skip locked)
    returning id`);
  return rows.length;
}

/** Deletes events without a body whose ids lie in this range. */
export async function deleteTombstones(
  db: Queryable,
  { from, before, limit }: { from: string; before: string; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    delete from webhook_event where id in (
      select id from webhook_event where id >= ${from} and id < ${before} and purge_at is null order by id limit ${limit}
      for update skip locked)
    returning id`);
  return rows.length;
}

/** Forgets the pace of endpoints that nothing was sent to since. */
export async function deletePaces(db: Queryable, beforeMs: number): Promise<void> {
  await db.query(sql`
    delete from webhook_endpoint where id in (
      select id from webhook_endpoint where next_at_ms < ${beforeMs} for update skip locked)`);
}

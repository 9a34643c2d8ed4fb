import { type Queryable, sql } from "../platform/database/db.ts";

export interface ReportedEventRow {
  readonly id: string;
  readonly sequence: number;
  readonly kind: string;
  /** Null for KYB, where the endpoint of the client domain has the URL. */
  readonly url: string | null;
  readonly createdAt: number;
  readonly deliveredAt: number | null;
  readonly attempts: number;
  /** Null when no attempt is to come. */
  readonly dueAtMs: number | null;
  /** Whether it waits for its endpoint to leave the quarantine. */
  readonly isHeld: boolean;
  readonly purgeAt: number | null;
}

/** The newest events of a stream, newest first, without their bodies. */
export async function listNewestEvents(
  db: Queryable,
  streamId: string,
  limit: number,
): Promise<ReportedEventRow[]> {
  return db.query<ReportedEventRow>(sql`
    select id, e.sequence, kind, url, created_at as "createdAt", delivered_at as "deliveredAt", attempts,
      due_at_ms as "dueAtMs", coalesce(is_held, false) as "isHeld", purge_at as "purgeAt"
    from webhook_event e
      left join lateral (select due_at_ms, is_held from webhook_delivery where event_id = e.id offset 0) as d on true
    where e.stream_id = ${streamId} order by e.sequence desc limit ${limit}`);
}

export interface ReportedAttemptRow {
  readonly id: string;
  readonly sequence: number;
  readonly number: number;
  readonly begunAtMs: number;
  readonly durationMs: number;
  readonly outcome: string;
  readonly status: number | null;
  readonly answerSealed: Buffer | null;
}

/** The attempts at the newest events of a stream, newest first. */
export async function listNewestAttempts(
  db: Queryable,
  streamId: string,
  limit: number,
): Promise<ReportedAttemptRow[]> {
  return db.query<ReportedAttemptRow>(sql`
    select a.id, e.sequence, a.number, a.begun_at_ms as "begunAtMs", a.duration_ms as "durationMs", a.outcome,
      a.status, a.answer_sealed as "answerSealed"
    from (select id, sequence, attempts from webhook_event where stream_id = ${streamId}
        order by sequence desc limit ${limit}) as e
      cross join lateral (
        select * from webhook_attempt
        where id = any(array(select e.id || '.' || made from generate_series(1, e.attempts) as made)) offset 0) as a
    order by a.begun_at_ms desc, e.sequence desc, a.number desc limit ${limit}`);
}

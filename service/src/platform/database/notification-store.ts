import { type Client, escapeIdentifier } from "pg";
import { advisoryLocks } from "./advisory-locks.ts";
import { type Queryable, sql } from "./db.ts";

/** Notified by every process when it begins to listen. */
export const arrivalChannel = "listener";

export interface Notification {
  readonly channel: string;
  readonly payload: string;
}

/** Makes this connection receive what is notified on `channel`; repeating it changes nothing. */
export async function listen(client: Client, channel: string): Promise<void> {
  await client.query(`listen ${escapeIdentifier(channel)}`);
}

/** Counts this connection among those that listen, as long as it lasts, and tells the others. */
export async function joinListeners(client: Client): Promise<void> {
  await client.query("select pg_advisory_lock_shared($1), pg_notify($2, '')", [
    advisoryLocks.listeners,
    arrivalChannel,
  ]);
}

/** Connections to this database that have joined the listeners. */
export async function countListeners(client: Client): Promise<number> {
  const { rows } = await client.query<{ count: number }>(
    `select count(*)::int as count from pg_locks
    where locktype = 'advisory' and objid = $1 and objsubid = 1 and granted
      and database = (select oid from pg_database where datname = current_database())`,
    [advisoryLocks.listeners],
  );
  return rows[0]?.count ?? 0;
}

export async function notifyAll(db: Queryable, all: readonly Notification[]): Promise<void> {
  const channels = all.map(({ channel }) => channel);
  const payloads = all.map(({ payload }) => payload);
  await db.query(sql`
    select pg_notify(channel, payload) from unnest(${channels}::text[], ${payloads}::text[]) as told (channel, payload)`);
}

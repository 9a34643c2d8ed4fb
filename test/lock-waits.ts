// For tests of two things at the same instant: one is held by a locked row, and the other begins once the first waits.
import { type Db, type Queryable, sql } from "../service/src/platform/database/db.ts";
import { until } from "./patience.ts";

/** A session of the database that waits for a lock. */
interface BlockedSession {
  /** What it called itself when it connected. */
  application: string;
  query: string;
}

/**
 * The sessions of this database that wait for a lock. A session that was granted its lock no longer counts, although
 * `pg_stat_activity` shows it as waiting until it has woken up. Not to be called inside a transaction, which sees the
 * sessions of its first query until it ends, and none that connect later.
 */
export async function listBlocked(db: Db): Promise<BlockedSession[]> {
  return db.query<BlockedSession>(sql`
    select application_name as application, query from pg_stat_activity activity
    where datname = current_database() and wait_event_type = 'Lock'
      and exists (select from pg_locks where pg_locks.pid = activity.pid and not granted)`);
}

/**
 * Resolves once enough sessions wait for what `holder` has locked, one behind the other or side by side. Jobs that wait
 * for each other do not count.
 *
 * @param db asks outside the transaction, as {@link listBlocked} does
 * @param waiting how many, or the calls that should wait: if one of them ends instead, this fails at once
 */
export async function untilBlocked(
  db: Db,
  holder: Queryable,
  waiting: number | readonly Promise<unknown>[] = 1,
): Promise<void> {
  const calls = typeof waiting === "number" ? [] : waiting;
  const sessions = typeof waiting === "number" ? waiting : waiting.length;
  let ended = 0;
  const note = (): void => {
    ended += 1;
  };
  for (const call of calls) void call.then(note, note);
  const pid = await pidOf(holder);
  await until(`${sessions} wait for what is locked`, async () => {
    if ((await listBehind(db, pid)).length >= sessions) return true;
    if (ended > 0) throw new Error(`of ${sessions} that were to wait ${ended} ended instead`);
    return null;
  });
}

async function pidOf(holder: Queryable): Promise<number> {
  const [own] = await holder.query<{ pid: number }>(sql`select pg_backend_pid() as pid`);
  return own?.pid ?? 0;
}

/** The queries of the sessions that wait for this one, directly or behind others. */
async function listBehind(db: Db, pid: number): Promise<{ query: string }[]> {
  return db.query<{ query: string }>(sql`
    with recursive behind (pid) as (
      select ${pid}::int
      union
      select activity.pid from behind, pg_stat_activity activity
      where datname = current_database() and wait_event_type = 'Lock'
        and behind.pid = any(pg_blocking_pids(activity.pid)))
    select query from behind join pg_stat_activity using (pid) where pid <> ${pid}`);
}

/**
 * Resolves once a session waits for what `holder` has locked, in a statement that contains one of the parts, by which it
 * is told from jobs of the world that may wait there too.
 *
 * @param call what should wait: if it ends instead, this fails at once
 */
export async function untilBlockedBehind(
  db: Db,
  holder: Queryable,
  { call, at }: { call: Promise<unknown>; at: readonly string[] },
): Promise<void> {
  const pid = await pidOf(holder);
  const where = at.join(" or ");
  const ending = noteEnd(call);
  await until(`a statement waits for what is locked: ${where}`, async () => {
    const behind = await listBehind(db, pid);
    if (behind.some(({ query }) => at.some((part) => query.includes(part)))) return true;
    if (ending.isOver) throw new Error(`what was to wait ended instead: ${where}`);
    return null;
  });
}

/** Resolves once the call is over, or waits for what `holder` has locked: the caller says which of them is right. */
export async function untilOverOrBlocked(
  db: Db,
  holder: Queryable,
  call: Promise<unknown>,
): Promise<"over" | "blocked"> {
  const pid = await pidOf(holder);
  const ending = noteEnd(call);
  return until("the call is over, or waits for what is locked", async () => {
    if (ending.isOver) return "over";
    return (await listBehind(db, pid)).length > 0 ? "blocked" : null;
  });
}

function noteEnd(call: Promise<unknown>): { readonly isOver: boolean } {
  const ending = { isOver: false };
  const note = (): void => void (ending.isOver = true);
  void call.then(note, note);
  return ending;
}

/** Resolves once a session of this database waits for a lock in a statement that contains `part`. */
export async function untilBlockedAt(db: Db, part: string): Promise<void> {
  await until(`a statement waits for a lock: ${part}`, async () =>
    (await listBlocked(db)).some(({ query }) => query.includes(part)) ? true : null,
  );
}

/**
 * Resolves once every transaction is over that had written or locked rows of this database when this was called. To be
 * called after a test's own purge, which skips rows that somebody holds: the jobs of a world may run the same purge at
 * that time, because the test has moved the clock beyond their pause.
 */
export async function untilWritersEnd(db: Db): Promise<void> {
  const listWriters = async (): Promise<string[]> => {
    const writers = await db.query<{ began: string }>(sql`
      select pid || ' ' || xact_start as began from pg_stat_activity
      where datname = current_database() and backend_xid is not null`);
    return writers.map(({ began }) => began);
  };
  const early = await listWriters();
  await until("the transactions of before are over", async () => {
    const now = new Set(await listWriters());
    return early.some((writer) => now.has(writer)) ? null : true;
  });
}

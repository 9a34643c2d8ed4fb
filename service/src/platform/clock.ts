import type { Db, Queryable } from "./db.ts";
import * as store from "./clock-store.ts";
import type { Notifications } from "./notifications.ts";

/** The time that every rule uses: the machine's clock plus the offset shared by all processes through the database. */
export interface Clock {
  /** Unix seconds, rounded down. */
  now(): number;
  nowMs(): number;
}

export interface SharedClock extends Clock, AsyncDisposable {
  /** Reads the offset again; done by itself on every notification. */
  refresh(): Promise<void>;
}

const channel = "clock";

/** Follows the shared offset. `machineNowMs` is replaced in tests of clock faults only. */
export async function openClock(
  db: Db,
  notifications: Notifications,
  machineNowMs: () => number = Date.now,
): Promise<SharedClock> {
  let offsetMs = 0;
  const refresh = async (): Promise<void> => {
    offsetMs = (await store.readOffsetSeconds(db)) * 1000;
  };
  const unsubscribe = await notifications.subscribe(channel, refresh);
  await refresh();
  const nowMs = (): number => machineNowMs() + offsetMs;
  return {
    nowMs,
    now: () => Math.floor(nowMs() / 1000),
    refresh,
    [Symbol.asyncDispose]: async () => unsubscribe(),
  };
}

/** Moves the shared time forward for every process. The caller checks the profile. @returns the new offset in seconds */
export async function advanceClock(db: Queryable, seconds: number): Promise<number> {
  return store.addOffsetSeconds(db, seconds);
}

/** How far this machine's clock is from the database's, in milliseconds; more than {@link skewLimitMs} makes a process not ready. */
export async function clockSkewMs(
  db: Queryable,
  machineNowMs: () => number = Date.now,
): Promise<number> {
  const before = machineNowMs();
  const databaseMs = await store.readDatabaseMs(db);
  const after = machineNowMs();
  return (before + after) / 2 - databaseMs;
}

export const skewLimitMs = 2000;

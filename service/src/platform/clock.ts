import type { Db, Queryable } from "./database/db.ts";
import * as store from "./clock-store.ts";
import type { Notifications } from "./database/notifications.ts";

/**
 * The time that every rule uses: the machine's clock plus the offset shared by all processes through the database. It
 * never runs backwards within a process, even if the machine's clock is set back.
 */
export interface Clock {
  /** Unix seconds, rounded down. */
  now(): number;
  nowMs(): number;
  /**
   * Milliseconds by which it is ahead of the machine's clock because that was set back or is wrong; absent for a clock
   * without a machine.
   */
  leadMs?(): number;
  /** Milliseconds by which it is ahead of the database's clock, as last measured; absent if nobody measures that. */
  aheadMs?(): number;
  noteAhead?(ms: number): void;
  /**
   * Calls the listener whenever the time was moved; absent for a clock that nobody moves.
   *
   * @returns a function that removes the listener
   */
  onMoved?(listener: MoveListener): () => void;
}

/** @param everyJob whether every job is to run at once, even if its pause has not ended by the new time */
type MoveListener = (everyJob: boolean) => void;

export interface SharedClock extends Clock, AsyncDisposable {
  /** Reads the offset again; this also happens automatically on every notification, but notifications may be lost. */
  refresh(): Promise<void>;
  onMoved(listener: MoveListener): () => void;
  leadMs(): number;
}

/** The clocks of the machine that a process runs on. */
export interface Machine {
  /** Unix milliseconds; may be set forward and back at any moment. */
  nowMs(): number;
  /** Milliseconds since an arbitrary moment; nobody can set this clock. */
  elapsedMs(): number;
}

const thisMachine: Machine = { nowMs: () => Date.now(), elapsedMs: () => performance.now() };

const channel = "clock";

/**
 * How fast time runs while it is ahead of a machine's clock that was set back. Standing still would be worse than being
 * ahead, because nothing would end any more.
 */
const catchUpRate = 0.5;

/**
 * Follows the machine's clock, but never runs backwards: if it is ahead, it runs at {@link catchUpRate} until the
 * machine's clock has caught up.
 */
function forwardOnly(machine: Machine, offsetMs: () => number) {
  let lastMs = -Infinity;
  let lastElapsedMs = 0;
  const machineMs = (): number => machine.nowMs() + offsetMs();
  const nowMs = (): number => {
    const targetMs = machineMs();
    const elapsedMs = machine.elapsedMs();
    // A clock that is set forward is believed at once, because a machine that was asleep looks the same.
    lastMs = Math.max(targetMs, lastMs + (elapsedMs - lastElapsedMs) * catchUpRate);
    lastElapsedMs = elapsedMs;
    return Math.floor(lastMs);
  };
  return { nowMs, leadMs: () => nowMs() - Math.floor(machineMs()) };
}

/**
 * Opens the clock of this process, which follows the shared offset.
 *
 * @param options.isBrief true for a process that ends soon: if its machine's clock is wrong, it uses the database's,
 * measured once
 * @param options.machine replaced in tests of clock faults only
 */
export async function openClock(
  db: Db,
  notifications: Notifications,
  { isBrief = false, machine = thisMachine }: { isBrief?: boolean; machine?: Machine } = {},
): Promise<SharedClock> {
  const correctionMs = isBrief ? await measureCorrection(db, machine) : 0;
  let offsetMs = 0;
  const listeners = new Set<MoveListener>();
  const read = async (everyJob: boolean): Promise<void> => {
    const before = offsetMs;
    offsetMs = (await store.readOffsetSeconds(db)) * 1000;
    // An earlier read may have found the move before its notification came, and so without `everyJob`.
    if (offsetMs !== before || everyJob) for (const listener of listeners) listener(everyJob);
  };
  let reading: Promise<void> = Promise.resolve();
  // One read at a time: of two at once, the one that read the older value might end last.
  const refresh = async (payload = ""): Promise<void> => {
    const readNext = async (): Promise<void> => read(payload === everyJobPayload);
    reading = reading.then(readNext, readNext);
    return reading;
  };
  const unsubscribe = await notifications.subscribe(channel, refresh);
  await refresh();
  const { nowMs, leadMs } = forwardOnly(machine, () => offsetMs + correctionMs);
  let aheadMs = 0;
  return {
    nowMs,
    now: () => Math.floor(nowMs() / 1000),
    refresh,
    onMoved(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    leadMs: () => leadMs() + correctionMs,
    aheadMs: () => aheadMs,
    noteAhead(ms) {
      aheadMs = Math.abs(ms) < skewToleranceMs ? 0 : ms;
    },
    [Symbol.asyncDispose]: async () => unsubscribe(),
  };
}

/** How far the time of this installation has been moved forward, in seconds. */
export async function readMovedSeconds(db: Queryable): Promise<number> {
  return store.readOffsetSeconds(db);
}

async function measureCorrection(db: Queryable, machine: Machine): Promise<number> {
  const skewMs = await clockSkewMs(db, () => machine.nowMs());
  return Math.abs(skewMs) <= skewLimitMs ? 0 : -Math.round(skewMs);
}

/** Whether the time of this installation has ever been moved. */
export async function isClockMoved(db: Queryable): Promise<boolean> {
  return (await readMovedSeconds(db)) !== 0;
}

const everyJobPayload = "every job";

/**
 * Moves the shared time forward for every process. The caller checks the profile.
 *
 * @param options.everyJob whether to run even the jobs whose pause does not end by then
 * @returns the new offset in seconds
 */
export async function advanceClock(
  db: Queryable,
  seconds: number,
  options: { everyJob?: boolean } = {},
): Promise<number> {
  return store.addOffsetSeconds(db, seconds, options.everyJob === true ? everyJobPayload : "");
}

/**
 * Smaller differences cannot be distinguished from the delay of a measurement on a busy machine, and would make spans
 * of time uneven.
 */
const skewToleranceMs = 1000;

/**
 * How far this machine's clock is from the database's, in milliseconds; more than {@link skewLimitMs} makes a process
 * not ready. An answer that took seconds, such as one that waited for a connection, tells only how far it is at least.
 */
export async function clockSkewMs(
  db: Queryable,
  machineNowMs: () => number = Date.now,
): Promise<number> {
  const before = machineNowMs();
  const databaseMs = await store.readDatabaseMs(db);
  const after = machineNowMs();
  const skewMs = (before + after) / 2 - databaseMs;
  const unsureMs = (after - before) / 2;
  if (unsureMs < skewToleranceMs) return skewMs;
  return skewMs > 0 ? Math.max(0, skewMs - unsureMs) : Math.min(0, skewMs + unsureMs);
}

export const skewLimitMs = 2000;

/** Unix seconds: whatever ended before this has ended for every process, even for one whose clock is behind. */
export const endedForAll = (clock: Clock): number => clock.now() - (2 * skewLimitMs) / 1000;

/** A process whose machine was suspended may be this late for some seconds, until it measures that. */
const lateSecondsMax = 600;

/** As {@link endedForAll}, but also for a process that is minutes late: one-time values are remembered until then. */
export const endedForLate = (clock: Clock): number => clock.now() - lateSecondsMax;

/** Whether the time of this process is within {@link skewLimitMs} of the database's clock, as measured now. */
export async function isClockRight(db: Queryable, clock: Clock): Promise<boolean> {
  const skewMs = (await clockSkewMs(db)) + (clock.leadMs?.() ?? 0);
  clock.noteAhead?.(skewMs);
  return Math.abs(skewMs) <= skewLimitMs;
}

/**
 * Unix milliseconds by the database's clock, within a second, from the last measurement: for spans of seconds that
 * begin in one process and end in another.
 */
export const databaseNowMs = (clock: Clock): number =>
  Math.floor(clock.nowMs() - (clock.aheadMs?.() ?? 0));

/** A measurement is valid for this long, unless the clock has been set since. */
const measuredForMs = 5000;
const setByMsMin = 500;

/**
 * Makes a check that may be called all the time, since it measures only every few seconds.
 *
 * @param onChange called at the first wrong answer, and at the next right one
 */
export function watchClock(
  measure: () => Promise<boolean>,
  onChange: (isRight: boolean) => void,
  machine: Machine = thisMachine,
): () => Promise<boolean> {
  let last: { atMs: number; aheadMs: number; isRight: Promise<boolean> } | null = null;
  let wasRight = true;
  const measureNow = async (): Promise<boolean> => {
    const isRight = await measure();
    if (isRight !== wasRight) onChange(isRight);
    wasRight = isRight;
    return isRight;
  };
  return async () => {
    const atMs = machine.elapsedMs();
    const aheadMs = machine.nowMs() - atMs;
    const isKnown =
      last !== null &&
      atMs - last.atMs < measuredForMs &&
      Math.abs(aheadMs - last.aheadMs) < setByMsMin;
    if (last !== null && isKnown) return last.isRight;
    const isRight = measureNow();
    last = { atMs, aheadMs, isRight };
    isRight.catch(() => {
      last = null;
    });
    return isRight;
  };
}

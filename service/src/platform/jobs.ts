import type { SharedClock } from "./clock.ts";
import type { Ctx } from "./context.ts";
import { FailureStreak } from "./telemetry/repetition.ts";

/** Work that every process does periodically. It takes its own locks, so running several at once does no harm. */
export interface Job {
  readonly name: string;
  /**
   * Pause between the end of one run and the start of the next: 0.5 at least, kept to a quarter of a second. The first
   * run comes after half of it to all of it, and within 10 minutes, so that a process that is replaced every day still
   * does what is due once a day. A pause of a minute or more ends at once if the time is moved beyond it, and every
   * pause if the move asks for every job.
   */
  readonly everySeconds: number;
  /**
   * A channel whose notifications end the pause at once; a notification that comes during a run causes another run, which
   * begins a moment later if that one fails.
   */
  readonly wakeOn?: string;
  /**
   * @param closing aborted when the process ends, so that a long run can finish early
   * @param nextWake lets a run that waits for work under way begin more when it is woken
   */
  run(closing: AbortSignal, nextWake?: NextWake): Promise<void>;
}

/** Resolves at the next notification. Call it before looking for due work, so that none is missed. */
export type NextWake = () => Promise<void>;

type JobContext = Pick<Ctx, "log" | "notifications"> & {
  /** Asked before each run; if it says no, that run is skipped. */
  readonly mayRun?: () => Promise<boolean>;
  /** The clock by which pauses are measured if the time of the installation can be moved. */
  readonly sharedClock?: Pick<SharedClock, "nowMs" | "onMoved">;
};

/**
 * Starts a loop for each job; closing waits for the runs under way. A run that fails is tried again. While runs keep
 * failing in the same way, one failure a minute is logged: during an outage of the database, every job fails every
 * time.
 */
export function startJobs(ctx: JobContext, jobs: readonly Job[]): AsyncDisposable {
  const inTurn = openTurns();
  const loops = jobs.map((job, at) =>
    startLoop(ctx, job, { firstMs: firstPauseMs(job, at), inTurn }),
  );
  const stopFollowing = ctx.sharedClock?.onMoved((everyJob) => {
    for (const loop of loops) loop.catchUp(everyJob);
  });
  return {
    async [Symbol.asyncDispose]() {
      stopFollowing?.();
      await Promise.all(loops.map(async (loop) => loop.close()));
    },
  };
}

/** Spreads jobs with the same period over its second half. */
function firstPauseMs({ everySeconds }: Job, at: number): number {
  const spread = (at * goldenRatio) % 1;
  return Math.min(everySeconds, firstSecondsMax) * 1000 * (1 - spread / 2);
}

const firstSecondsMax = 600;

/** Jobs with shorter pauses run soon enough after the time was moved, unless every job is asked for. */
const followedSecondsMin = 60;

/**
 * The pause after a run that failed and was woken meanwhile, doubled with each further failure up to a second. It is
 * short, since what woke it may be unrelated to the failure, and grows, so that endless failures do not keep the
 * process busy.
 */
const failedPauseMs = { first: 50, longest: 1000 };

function pauseMsAfter(failures: number): number {
  return Math.min(failedPauseMs.longest, failedPauseMs.first * 2 ** (failures - 1));
}

/**
 * Pauses end at multiples of this, so that jobs wake the process together: with a moment for each, an idle process and
 * its database took 1.6 times the CPU time.
 */
const beatMs = 500;

function msUntilBeatAfter(pauseMs: number): number {
  const nowMs = performance.now();
  return Math.ceil(Math.round((nowMs + pauseMs) / beatMs) * beatMs - nowMs);
}

type Turns = (begin: () => Promise<void>) => void;

/**
 * Begins jobs that are due at the same moment one after the other, so that they share a connection instead of taking
 * one each. One that takes longer than {@link lookMsMax} holds up no other.
 */
function openTurns(): Turns {
  let last = Promise.resolve();
  return (begin) => {
    last = last.then(async () => endedOrLate(begin()));
  };
}

const lookMsMax = 5;

async function endedOrLate(run: Promise<void>): Promise<void> {
  const late = Promise.withResolvers<void>();
  const timer = setTimeout(late.resolve, lookMsMax).unref();
  await Promise.race([run, late.promise]);
  clearTimeout(timer);
}

/** Multiples of it modulo 1 keep their distance from each other, however many there are. */
const goldenRatio = (1 + Math.sqrt(5)) / 2;

interface Loop {
  /** Begins the next run if the time was moved beyond its pause, or in any case if `everyJob` is asked for. */
  catchUp(everyJob: boolean): void;
  close(): Promise<void>;
}

function startLoop(
  ctx: JobContext,
  job: Job,
  { firstMs, inTurn }: { readonly firstMs: number; readonly inTurn: Turns },
): Loop {
  let [isWoken, isRunning] = [false, false];
  const failures = new FailureStreak();
  const closing = new AbortController();
  let running = Promise.resolve();
  let news = Promise.withResolvers<void>();
  const nextWake: NextWake = async () => news.promise;
  let timer: NodeJS.Timeout | undefined;
  let dueAtMs = Infinity;
  const nowMs = (): number => ctx.sharedClock?.nowMs() ?? 0;
  const work = async (): Promise<void> => {
    try {
      if (ctx.mayRun === undefined || (await ctx.mayRun())) await job.run(closing.signal, nextWake);
      failures.end();
    } catch (error) {
      if (!failures.add(error)) return;
      ctx.log.error({ err: error, job: job.name, ...failures.logFields }, "a job failed");
    }
  };
  const start = (): void => {
    clearTimeout(timer);
    [isWoken, isRunning] = [false, true];
    // A new promise frees what earlier runs attached to the old one: it may be months until a wake comes during a run.
    news = Promise.withResolvers();
    running = work().finally(() => {
      isRunning = false;
      if (closing.signal.aborted) return;
      if (!isWoken) pause(job.everySeconds * 1000);
      else if (failures.count > 0) timer = setTimeout(start, pauseMsAfter(failures.count)).unref();
      else start();
    });
  };
  const startInTurn = async (): Promise<void> => {
    if (!isRunning && !closing.signal.aborted) start();
    await running;
  };
  const pause = (ms: number): void => {
    dueAtMs = nowMs() + ms;
    timer = setTimeout(inTurn, msUntilBeatAfter(ms), startInTurn).unref();
  };
  const wake = (): void => {
    if (closing.signal.aborted) return;
    if (!isRunning) return start();
    isWoken = true;
    news.resolve();
    news = Promise.withResolvers();
  };
  pause(firstMs);
  const subscribed =
    job.wakeOn === undefined ? null : ctx.notifications.subscribe(job.wakeOn, wake);
  return {
    catchUp(everyJob) {
      if (!everyJob && job.everySeconds < followedSecondsMin) return;
      // A run under way began before the time was moved.
      if (isRunning) isWoken = true;
      else if (everyJob || nowMs() >= dueAtMs) start();
    },
    async close() {
      closing.abort();
      clearTimeout(timer);
      await running;
      (await subscribed)?.();
    },
  };
}

import type { Ctx } from "./context.ts";

/** Work that every process does again and again; it takes its own locks, so several at once do no harm. */
export interface Job {
  readonly name: string;
  /** Pause between the end of one run and the start of the next. */
  readonly everySeconds: number;
  /** A channel whose notifications end the pause at once; one that comes during a run makes another follow it. */
  readonly wakeOn?: string;
  run(): Promise<void>;
}

/** Starts each job's own loop; closing waits for the runs under way. A run that fails is logged and tried again. */
export function startJobs(
  ctx: Pick<Ctx, "log" | "notifications">,
  jobs: readonly Job[],
): AsyncDisposable {
  const loops = jobs.map((job) => startLoop(ctx, job));
  return {
    async [Symbol.asyncDispose]() {
      await Promise.all(loops.map(async (loop) => loop.close()));
    },
  };
}

interface Loop {
  close(): Promise<void>;
}

function startLoop(ctx: Pick<Ctx, "log" | "notifications">, job: Job): Loop {
  let [isClosed, isWoken, isRunning] = [false, false, false];
  let running = Promise.resolve();
  let timer: NodeJS.Timeout | undefined;
  const work = async (): Promise<void> => {
    try {
      await job.run();
    } catch (error) {
      ctx.log.error({ err: error, job: job.name }, "a job failed");
      // What failed when it was woken would fail at once again: it takes its pause.
      isWoken = false;
    }
  };
  const start = (): void => {
    clearTimeout(timer);
    isWoken = false;
    isRunning = true;
    running = work().finally(() => {
      isRunning = false;
      if (isClosed) return;
      if (isWoken) start();
      else pause();
    });
  };
  const pause = (): void => {
    timer = setTimeout(start, job.everySeconds * 1000).unref();
  };
  const wake = (): void => {
    if (isClosed) return;
    if (isRunning) isWoken = true;
    else start();
  };
  pause();
  const subscribed = subscribe(ctx, job, wake);
  return {
    async close() {
      isClosed = true;
      clearTimeout(timer);
      await running;
      (await subscribed)();
    },
  };
}

/** Without its notifications a job still runs after every pause. */
async function subscribe(
  ctx: Pick<Ctx, "log" | "notifications">,
  job: Job,
  wake: () => void,
): Promise<() => void> {
  if (job.wakeOn === undefined) return () => undefined;
  try {
    return await ctx.notifications.subscribe(job.wakeOn, wake);
  } catch (error) {
    ctx.log.warn({ err: error, job: job.name }, "a job is not woken");
    return () => undefined;
  }
}

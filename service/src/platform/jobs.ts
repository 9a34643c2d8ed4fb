import type { Ctx } from "./context.ts";

/** Work that every process does again and again; it takes its own locks, so several at once do no harm. */
export interface Job {
  readonly name: string;
  /** Pause between the end of one run and the start of the next. */
  readonly everySeconds: number;
  run(): Promise<void>;
}

/** Starts each job's own loop; closing waits for the runs under way. A run that fails is logged and tried again. */
export function startJobs(ctx: Pick<Ctx, "log">, jobs: readonly Job[]): AsyncDisposable {
  const timers = new Map<string, NodeJS.Timeout>();
  const running = new Set<Promise<void>>();
  let isClosed = false;
  const schedule = (job: Job): void => {
    if (isClosed) return;
    timers.set(job.name, setTimeout(() => start(job), job.everySeconds * 1000).unref());
  };
  const work = async (job: Job): Promise<void> => {
    try {
      await job.run();
    } catch (error) {
      ctx.log.error({ err: error, job: job.name }, "a job failed");
    }
  };
  const start = (job: Job): void => {
    const run = work(job).finally(() => {
      running.delete(run);
      schedule(job);
    });
    running.add(run);
  };
  jobs.forEach(schedule);
  return {
    async [Symbol.asyncDispose]() {
      isClosed = true;
      for (const timer of timers.values()) clearTimeout(timer);
      await Promise.all(running);
    },
  };
}

import type { KybContext } from "../service/src/kyb/kyb-context.ts";
import { kybJobs } from "../service/src/kyb/jobs.ts";
import { untilWritersEnd } from "./lock-waits.ts";

/** Does what a process does for businesses every hour: it deletes what is over. */
export async function runHourlyJobs(
  ctx: Pick<KybContext, "config" | "db" | "clock">,
): Promise<void> {
  // None of them needs more of the context.
  const jobs = kybJobs(ctx as KybContext).filter(({ everySeconds }) => everySeconds === 3600);
  for (const job of jobs) await job.run(new AbortController().signal);
  await untilWritersEnd(ctx.db);
}

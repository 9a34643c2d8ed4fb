import type { Job } from "../platform/jobs.ts";
import type { Sender, WebhooksContext } from "./sender.ts";
import * as store from "./store.ts";

const purgeMax = 500;
const keptSeconds = 30 * 86_400;

/** The jobs of this slice; every process runs them. */
export function webhookJobs(ctx: WebhooksContext, sender: Sender): Job[] {
  return [
    {
      name: "webhooks",
      everySeconds: 1,
      wakeOn: "webhooks",
      run: async () => sender.pump(),
    },
    { name: "webhook-purge", everySeconds: 60, run: async () => purgeBodies(ctx) },
    { name: "webhook-retention", everySeconds: 3600, run: async () => forgetOld(ctx) },
    { name: "webhook-backlog", everySeconds: 30, run: async () => measureBacklog(ctx) },
  ];
}

/** Personal bodies go 24 hours after they were delivered, or when their time is over. */
export async function purgeBodies(ctx: Pick<WebhooksContext, "db" | "clock">): Promise<void> {
  while ((await store.purgePayloads(ctx.db, ctx.clock.now(), purgeMax)) === purgeMax);
}

/** Events go 30 days after they ended, the log of attempts after 30 days. */
export async function forgetOld(ctx: Pick<WebhooksContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - keptSeconds;
  await store.deleteAttempts(ctx.db, before);
  while ((await store.deleteEnded(ctx.db, before, purgeMax)) === purgeMax);
}

async function measureBacklog(ctx: WebhooksContext): Promise<void> {
  const { count, oldestDueAt } = await store.readBacklog(ctx.db);
  ctx.metrics.webhookBacklog.set(count);
  const age = oldestDueAt === null ? 0 : Math.max(0, ctx.clock.now() - oldestDueAt);
  ctx.metrics.webhookOldestDueSeconds.set(age);
}

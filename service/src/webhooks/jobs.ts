import type { Job } from "../platform/jobs.ts";
import { forgetOld, purgeBodies } from "./retention.ts";
import type { Sender, WebhooksContext } from "./sender.ts";
import * as store from "./store.ts";

/** The jobs of this slice; every process runs them. */
export function webhookJobs(ctx: WebhooksContext, sender: Sender): Job[] {
  return [
    {
      name: "webhook-deliveries",
      everySeconds: 1,
      wakeOn: "webhook_delivery",
      run: async () => sender.pump(),
    },
    { name: "webhook-purge", everySeconds: 60, run: async () => purgeBodies(ctx) },
    { name: "webhook-retention", everySeconds: 3600, run: async () => forgetOld(ctx) },
    { name: "webhook-backlog", everySeconds: 30, run: async () => measureBacklog(ctx) },
  ];
}

async function measureBacklog(ctx: WebhooksContext): Promise<void> {
  const { count, oldestDueAtMs } = await store.readBacklog(ctx.db);
  const lateMs = oldestDueAtMs === null ? 0 : Math.max(0, ctx.clock.nowMs() - oldestDueAtMs);
  ctx.metrics.webhookBacklog.set(count);
  ctx.metrics.webhookOldestDueSeconds.set(lateMs / 1000);
}

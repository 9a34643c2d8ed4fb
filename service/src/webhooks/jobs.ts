import type { Job } from "../platform/jobs.ts";
import { heldChannel } from "./endpoint-store.ts";
import { reconcileHeld } from "./held.ts";
import { forgetOld, purgeBodies } from "./retention.ts";
import type { Sender } from "./sender.ts";
import type { WebhooksContext } from "./webhooks-context.ts";
import * as store from "./delivery-store.ts";

/** The jobs of this slice; every process runs them. */
export function webhookJobs(ctx: WebhooksContext, sender: Sender): Job[] {
  return [
    {
      name: "webhook-deliveries",
      everySeconds: 60,
      wakeOn: "webhook_delivery",
      run: async () => sender.pump(),
    },
    { name: "webhook-retries", everySeconds: 1, run: async () => pumpDue(ctx, sender) },
    {
      name: "webhook-leases",
      everySeconds: 5,
      run: async () => store.endLeases(ctx.db, Math.floor(ctx.clock.nowMs())),
    },
    {
      name: "webhook-held",
      everySeconds: 5,
      wakeOn: heldChannel,
      run: async () => reconcileHeld(ctx),
    },
    { name: "webhook-purge", everySeconds: 60, run: async () => purgeBodies(ctx) },
    { name: "webhook-retention", everySeconds: 3600, run: async () => forgetOld(ctx) },
    { name: "webhook-backlog", everySeconds: 30, run: async () => measureBacklog(ctx) },
  ];
}

/** Asks first whether anything is due: that is much cheaper than a claim that finds nothing. */
async function pumpDue(ctx: WebhooksContext, sender: Sender): Promise<void> {
  // Results have to be recorded before their leases end: otherwise delivered events are sent again.
  if (sender.hasUnrecorded || (await store.hasDue(ctx.db, Math.floor(ctx.clock.nowMs()))))
    await sender.pump();
}

async function measureBacklog(ctx: WebhooksContext): Promise<void> {
  const { count, oldestDueAtMs } = await store.readBacklog(ctx.db);
  const lateMs = oldestDueAtMs === null ? 0 : Math.max(0, ctx.clock.nowMs() - oldestDueAtMs);
  ctx.metrics.webhookBacklog.set(count);
  ctx.metrics.webhookOldestDueSeconds.set(lateMs / 1000);
}

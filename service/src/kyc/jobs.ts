import { createDeferred } from "../platform/deferred.ts";
import type { Job } from "../platform/jobs.ts";
import type { KycContext } from "./kyc-context.ts";
import { failOverdueOrders, settleOrders } from "./settlement.ts";
import { expireOrders, purgeTokens } from "./orders.ts";

/** The jobs of this slice; every process runs them. */
export function kycJobs(ctx: KycContext): Job[] {
  return [
    ...(ctx.config.chain === "off" ? [] : settlementJobs(ctx)),
    { name: "kyc-expiry", everySeconds: 1, run: async () => expireOrders(ctx) },
    { name: "kyc-tokens", everySeconds: 600, run: async () => purgeTokens(ctx) },
  ];
}

function settlementJobs(ctx: KycContext): Job[] {
  const deferred = createDeferred(ctx.clock);
  return [
    {
      name: "kyc-settlement",
      everySeconds: 0.5,
      wakeOn: "kyc_settlement",
      run: async () => settleOrders(ctx, deferred),
    },
    { name: "kyc-overdue", everySeconds: 60, run: async () => failOverdueOrders(ctx) },
  ];
}

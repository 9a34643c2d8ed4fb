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
  return [
    {
      name: "kyc-settlement",
      everySeconds: 0.5,
      wakeOn: "kyc_settlement",
      run: async () => settleOrders(ctx),
    },
    { name: "kyc-overdue", everySeconds: 60, run: async () => failOverdueOrders(ctx) },
  ];
}

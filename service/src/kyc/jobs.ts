import type { Job } from "../platform/jobs.ts";
import type { KycContext } from "./kyc-context.ts";
import { expireOrders, purgeTokens } from "./orders.ts";

/** The jobs of this slice; every process runs them. */
export function kycJobs(ctx: KycContext): Job[] {
  return [
    { name: "kyc-expiry", everySeconds: 1, run: async () => expireOrders(ctx) },
    { name: "kyc-tokens", everySeconds: 600, run: async () => purgeTokens(ctx) },
  ];
}

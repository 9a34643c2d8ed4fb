import { openWaitingGauge } from "../platform/telemetry/waiting-gauge.ts";
import type { KycContext } from "./kyc-context.ts";
import { findOldestWaitingSince } from "./settlement-store.ts";

/**
 * Approved orders are handed over within minutes, unless the chain or a lock in the database delays them. Of such a
 * lock no other gauge tells: those of the chain see only transactions that exist already.
 */
export function openOrderMetrics(ctx: KycContext): void {
  openWaitingGauge(ctx, {
    name: "orders_oldest_waiting_seconds",
    help: "How long the oldest approved order has waited for its batch to be final, or then for its hand-over.",
    findSince: async () => findOldestWaitingSince(ctx.db),
  });
}

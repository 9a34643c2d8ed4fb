import { openWaitingGauge } from "../platform/telemetry/waiting-gauge.ts";
import type { KycContext } from "./kyc-context.ts";
import { findOldestWaitingSince } from "./settlement-store.ts";

/**
 * Approved orders are handed over within minutes, unless the chain, or somebody's lock in the database, holds them up.
 * Of the latter nothing else tells: there is no transaction yet that could wait.
 */
export function openOrderMetrics(ctx: KycContext): void {
  openWaitingGauge(ctx, {
    name: "orders_oldest_waiting_seconds",
    help: "How long the oldest approved order has waited for its batch to be final, or then for its hand-over.",
    findSince: async () => findOldestWaitingSince(ctx.db),
  });
}

import { Gauge } from "prom-client";
import { readInTime } from "../platform/telemetry/metrics.ts";
import type { KycContext } from "./kyc-context.ts";
import { findOldestWaitingSince } from "./settlement-store.ts";

/**
 * Approved orders are handed over within minutes, unless the chain, or somebody's lock in the database, holds them up.
 * Of the latter nothing else tells: there is no transaction yet that could wait.
 */
export function openOrderMetrics({ db, clock, metrics }: KycContext): void {
  const gauge = new Gauge({
    name: "orders_oldest_waiting_seconds",
    help: "How long the oldest approved order has waited for its batch to be final, or then for its hand-over.",
    registers: [metrics.registry],
    async collect() {
      const seconds = await readInTime(async () => {
        const since = await findOldestWaitingSince(db);
        return since === null ? 0 : Math.max(0, clock.now() - since);
      });
      if (seconds === null) gauge.remove();
      else gauge.set(seconds);
    },
  });
}

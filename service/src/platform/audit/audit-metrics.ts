import { Gauge } from "prom-client";
import type { Ctx } from "../context.ts";
import { readInTime } from "../telemetry/metrics.ts";
import { findOldestUnlinkedAt } from "./audit-store.ts";

/**
 * Entries are linked within a second, unless no job runs, or somebody's transaction goes on that began to write before
 * them, be it in another database of the server. Until then nothing would show that they were changed.
 */
export function openAuditMetrics({
  db,
  clock,
  metrics,
}: Pick<Ctx, "db" | "clock" | "metrics">): void {
  const gauge = new Gauge({
    name: "audit_oldest_unsealed_seconds",
    help: "How long the oldest entry of the audit trail has waited for its seal.",
    registers: [metrics.registry],
    async collect() {
      const seconds = await readInTime(async () => {
        const at = await findOldestUnlinkedAt(db);
        return at === null ? 0 : Math.max(0, clock.now() - at);
      });
      if (seconds === null) gauge.remove();
      else gauge.set(seconds);
    },
  });
}

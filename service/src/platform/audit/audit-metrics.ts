import type { Ctx } from "../context.ts";
import { openWaitingGauge } from "../telemetry/waiting-gauge.ts";
import { findOldestUnlinkedAt } from "./audit-store.ts";

/**
 * Entries are linked within a second, unless no job runs, or an older writing transaction is still open, even one in
 * another database of the server. Until it is linked, an entry can be changed without a trace.
 */
export function openAuditMetrics(ctx: Pick<Ctx, "db" | "clock" | "metrics">): void {
  openWaitingGauge(ctx, {
    name: "audit_oldest_unsealed_seconds",
    help: "How long the oldest entry of the audit trail has waited for its seal.",
    findSince: async () => findOldestUnlinkedAt(ctx.db),
  });
}

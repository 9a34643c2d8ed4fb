import { Counter, Gauge } from "prom-client";
import type { Ctx } from "../platform/context.ts";
import { readInTime } from "../platform/telemetry/metrics.ts";

/** What delays transactions. All of it is retried automatically. */
const allAlarms = [
  "node_unreachable",
  "node_refused",
  "signer_refused",
  "other_chain",
  "out_of_funds",
  "spend_cap",
  // One transaction alone costs more than a day's cap.
  "cost_above_cap",
  "fee_too_low",
  "would_revert",
  "reverted",
  "nonce_taken",
  "deep_reorganisation",
] as const;
type Alarm = (typeof allAlarms)[number];

const transactionEvents = [
  "signed",
  "resent",
  "bumped",
  "displaced",
  "lost",
  "succeeded",
  "reverted",
] as const;
type TransactionEvent = (typeof transactionEvents)[number];

export interface ChainMetrics {
  count(event: TransactionEvent, total?: number): void;
  /** Counts the alarm, and logs it at most once a minute. `details` holds no personal data and no secret. */
  raise(alarm: Alarm, details: Record<string, unknown>): void;
}

/** The values of the gauges. */
export interface ChainTotals {
  readonly queued: number;
  readonly sent: number;
  readonly spentWeiToday: bigint;
}

const quietMs = 60_000;
const weiPerCoin = 1e18;

/** @param readTotals called once at each scrape; if it does not answer in time, the gauges have no value */
export function openChainMetrics(
  ctx: Pick<Ctx, "metrics" | "log" | "clock">,
  readTotals: () => Promise<ChainTotals>,
): ChainMetrics {
  const registers = [ctx.metrics.registry];
  const alarms = new Counter({
    name: "chain_alarms_total",
    help: "What kept transactions from their way, by alarm.",
    labelNames: ["alarm"] as const,
    registers,
  });
  const transactions = new Counter({
    name: "chain_transactions_total",
    help: `What happened to transactions: ${transactionEvents.join(", ")}.`,
    labelNames: ["event"] as const,
    registers,
  });
  // Series start at 0, because Prometheus sees no increase in one that starts at 1.
  for (const alarm of allAlarms) alarms.inc({ alarm }, 0);
  for (const event of transactionEvents) transactions.inc({ event }, 0);
  let reading: Promise<ChainTotals | null> | null = null;
  // The two gauges of a scrape share one read.
  const readOnce = async (): Promise<ChainTotals | null> =>
    (reading ??= readInTime(readTotals).finally(() => (reading = null)));
  const spent = new Gauge({
    name: "chain_spent_today_coins",
    help: "What the transactions signed today (UTC) may cost at most, in native coin.",
    registers,
    async collect() {
      const totals = await readOnce();
      if (totals === null) spent.remove();
      else spent.set(Number(totals.spentWeiToday) / weiPerCoin);
    },
  });
  const pending = new Gauge({
    name: "chain_transactions_pending",
    help: "Transactions that are not final, by status.",
    labelNames: ["status"] as const,
    registers,
    async collect() {
      const totals = await readOnce();
      pending.reset();
      if (totals === null) return;
      pending.set({ status: "queued" }, totals.queued);
      pending.set({ status: "sent" }, totals.sent);
    },
  });
  const loggedMs = new Map<Alarm, number>();
  return {
    count(event, total = 1) {
      transactions.inc({ event }, total);
    },
    raise(alarm, details) {
      alarms.inc({ alarm });
      const nowMs = ctx.clock.nowMs();
      if (nowMs - (loggedMs.get(alarm) ?? 0) < quietMs) return;
      loggedMs.set(alarm, nowMs);
      ctx.log.error({ ...details, alarm }, "the chain raises an alarm");
    },
  };
}

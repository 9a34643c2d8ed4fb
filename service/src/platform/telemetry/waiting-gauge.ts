import { Gauge } from "prom-client";
import type { Ctx } from "../context.ts";
import { readInTime } from "./metrics.ts";

/**
 * Opens a gauge of how many seconds the oldest of something has waited, read from the database at each scrape. It has
 * no value if that does not answer in time.
 *
 * @param given.findSince since when it has waited, Unix seconds; null if nothing waits, which shows as 0
 */
export function openWaitingGauge(
  { clock, metrics }: Pick<Ctx, "clock" | "metrics">,
  {
    name,
    help,
    findSince,
  }: { name: string; help: string; findSince: () => Promise<number | null> },
): void {
  const gauge = new Gauge({
    name,
    help,
    registers: [metrics.registry],
    async collect() {
      const seconds = await readInTime(async () => {
        const since = await findSince();
        return since === null ? 0 : Math.max(0, clock.now() - since);
      });
      if (seconds === null) gauge.remove();
      else gauge.set(seconds);
    },
  });
}

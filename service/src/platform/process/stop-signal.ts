import type { Config } from "../config/config.ts";
import { createLog } from "../telemetry/log.ts";

/** The time that a process has after its drain to close what it opened, including its own database. */
const closingSeconds = 4;

/**
 * Watches for SIGTERM and SIGINT. While the process starts, they end it at once with status 0: nobody relies on it yet,
 * and what it embeds ends with it. A start may take minutes if a chain has to mine the contracts.
 *
 * @returns a function to be called at the end of the start, which resolves when the process is asked to stop. From then
 *   on the process has its drain and 4 s: whatever still hangs after that is left as a kill would leave it. Later
 *   signals change nothing: a group's signal often comes twice, from the shell and from npm, and must not cut the drain
 *   short.
 */
export function watchStopSignal(
  config: Pick<Config, "drainSeconds" | "logLevel">,
): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  let stop = endAtOnce;
  process.on("SIGTERM", () => stop());
  process.on("SIGINT", () => stop());
  return async () => {
    stop = () => resolve(undefined);
    await promise;
    setTimeout(() => endLate(config), (config.drainSeconds + closingSeconds) * 1000).unref();
  };
}

function endAtOnce(): void {
  process.exit(0);
}

function endLate({ drainSeconds, logLevel }: Pick<Config, "drainSeconds" | "logLevel">): void {
  createLog({ level: logLevel }).warn({ drainSeconds }, "the process ends with work left undone");
  process.exit(0);
}

import type { Config } from "../config/config.ts";
import { createLog } from "../telemetry/log.ts";

/**
 * Lets a fault that nobody handles end the process with a line of the log. Node would print the error's fields too, and
 * those of PostgreSQL hold values of rows.
 */
export function tellUnhandledFault({ logLevel }: Pick<Config, "logLevel">): void {
  process.once("uncaughtException", (error) => {
    createLog({ level: logLevel }).fatal({ err: error }, "the process ends by a fault");
    process.exit(1);
  });
}

import { ConfigError } from "../config/config.ts";
import { isOutage } from "../database/db.ts";

/** Faults of the surroundings that have a class of their own; their modules are loaded only where they are used. */
const foreseenNames = new Set(
  [
    ["EmbeddedPostgresFault", "EmbeddedPostgresInUse", "OtherVersion", "SealBroken"],
    ["NodeAway", "WrongChain"],
  ].flat(),
);
/**
 * Codes of the system (a port in use, a directory that cannot be written, an unknown host), or of a PostgreSQL that
 * refuses the connection.
 */
const foreseenCodes = /^(?:E[A-Z0-9]+|(?:08|28|3D|53)[0-9A-Z]{3}|57P[0-9]{2})$/;

/**
 * A fault that keeps a process from starting and that whoever starts it can mend, in one line: a wrong setting, a port
 * that is in use, a database that does not answer or is another version's; null for a fault that nobody foresaw.
 */
export function describeStartFault(error: unknown): string | null {
  if (!(error instanceof Error)) return null;
  // A host with several addresses was tried at each of them.
  if (error instanceof AggregateError && error.message === "")
    return describeStartFault(error.errors.at(0));
  const { code } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return sayPortInUse(error);
  const isForeseen =
    error instanceof ConfigError ||
    foreseenNames.has(error.name) ||
    isOutage(error) ||
    (typeof code === "string" && foreseenCodes.test(code));
  return isForeseen ? error.message.replaceAll(/\s*\n\s*/g, " ") : null;
}

/** The demo has its shop beside the service. */
function sayPortInUse(error: Error & { address?: string; port?: number }): string {
  const { address = "", port = 0 } = error;
  return `port ${port} is already in use at ${address}: stop what listens there, or choose other ports by PORT (the demo's shop takes the next one) and METRICS_PORT`;
}

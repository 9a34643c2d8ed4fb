import { ConfigError } from "../config/config.ts";
import { isCertificateFault } from "../database/database-fault.ts";
import { isOutage, isReadOnly } from "../database/database-fault.ts";

/**
 * Faults of the environment that have their own class, by name, since their modules are loaded only where they are
 * used.
 */
const foreseenNames = new Set(
  [
    ["DirectoryLockFault", "EmbeddedChainFault", "EmbeddedPostgresFault", "EmbeddedPostgresInUse"],
    ["NodeAway", "OtherVersion", "SealBroken", "TableInUse", "UnfitDatabase", "WrongChain"],
  ].flat(),
);
/** Codes of the system, such as for a directory that cannot be written. */
const systemCodes = /^E[A-Z0-9]+$/;
/** Codes of a PostgreSQL that refuses the connection, or whose user owns nothing here. */
const refusalCodes = /^(?:(?:08|28|3D|53)[0-9A-Z]{3}|57P[0-9]{2}|42501)$/;
/**
 * Codes of a prepared statement that exists already, or does not exist any more: a pooler gave the connection another
 * session.
 */
const pooledCodes = new Set(["42P05", "26000"]);
/** Codes of statements that took too long, mostly because another session holds the rows. */
const busyCodes = new Set(["40P01", "55P03", "57014"]);

/** The original fault: if closing what was opened failed as well, `using` throws an error that names neither. */
export function firstFault(error: unknown): unknown {
  return error instanceof SuppressedError ? firstFault(error.suppressed) : error;
}

/**
 * One line about a fault that prevents a process from starting and that the person who starts it can fix: a wrong
 * setting, a port that is in use, a database that does not answer or belongs to another version; null for an unforeseen
 * fault.
 */
export function describeStartFault(thrown: unknown): string | null {
  const error = firstFault(thrown);
  if (!(error instanceof Error)) return null;
  // A host with several addresses is tried at each of them.
  if (error instanceof AggregateError && error.message === "")
    return describeStartFault(error.errors.at(0));
  const { code, syscall } = error as NodeJS.ErrnoException;
  if (code === "EADDRINUSE") return sayPortInUse(error);
  const message = error.message.replaceAll(/\s*\n\s*/g, " ");
  if (error instanceof ConfigError || foreseenNames.has(error.name)) return message;
  // The message is the other side's, and may be any text.
  if (error.name === "RpcError")
    return `the chain's node or the remote signer refused a call (CHAIN_RPC_URL, SIGNER_URL): ${message}`;
  if (syscall === "listen") return `${message}: choose another HOST or PORT`;
  // On a full disk, the system does not always say in which file.
  const isFull = (code === "ENOSPC" || code === "EDQUOT") && !("path" in error);
  if (syscall === "mkdir" || isFull) return `${message}: check DATA_DIR`;
  if (syscall === "getaddrinfo") return `${message}: check HOST and DATABASE_URL`;
  if (typeof code === "string" && refusalCodes.test(code))
    return `the database refuses the service (DATABASE_URL): ${message}`;
  if (isCertificateFault(error))
    return `the database has no trusted certificate (sslmode and sslrootcert of DATABASE_URL): ${message}`;
  if (typeof code === "string" && pooledCodes.has(code))
    return `a pooler in transaction mode is in front of the database (DATABASE_URL): ${message}`;
  if (typeof code === "string" && busyCodes.has(code))
    return `the database was too busy: ${message}`;
  if (isReadOnly(error))
    return `the database takes no changes (DATABASE_URL): point it at the primary, not at a standby, or end the read-only mode, in which providers put a database whose disk is nearly full (${message})`;
  // The code is also ENOENT for a directory that cannot be created.
  const isOfFile = syscall !== "connect" && "path" in error;
  if (syscall === "connect" || (!isOfFile && isOutage(error)))
    return `the database cannot be reached (DATABASE_URL): ${message}`;
  return typeof code === "string" && systemCodes.test(code) ? message : null;
}

/** The demo has its shop beside the service. */
function sayPortInUse(error: Error & { address?: string; port?: number }): string {
  const { address = "", port = 0 } = error;
  return `port ${port} is already in use at ${address}: stop what listens there, or choose other ports with PORT (the demo's shop takes the next one) and METRICS_PORT`;
}

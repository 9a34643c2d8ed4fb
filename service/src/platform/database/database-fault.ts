// Judges why a statement or a connection failed; pure.
import { DatabaseError } from "pg";

/** SQLSTATE of a failed statement, or null when the error is of another kind. */
export function sqlState(error: unknown): string | null {
  return error instanceof DatabaseError ? (error.code ?? null) : null;
}

/** States for what a text in PostgreSQL cannot hold: a zero character, in a text (22021) or in JSON (22P05). */
const unstorableStates: ReadonlySet<string | null> = new Set(["22021", "22P05"]);

/**
 * Whether a statement failed because PostgreSQL cannot store a caller's text; no stored text can be equal to it either.
 */
export function isUnstorable(error: unknown): boolean {
  return unstorableStates.has(sqlState(error));
}

/** Codes of a failed connection: server, host or its name cannot be reached, or no TLS that both sides speak. */
const connectionCodes = new Set(
  [
    ["ECONNREFUSED", "ECONNRESET", "EPIPE", "EPROTO", "ETIMEDOUT"],
    ["EHOSTUNREACH", "EHOSTDOWN", "ENETUNREACH", "ENETDOWN"],
    ["ENOENT", "ENOTFOUND", "EAI_AGAIN"],
    // This process, or the machine, has no descriptor left for a connection.
    ["EMFILE", "ENFILE"],
  ].flat(),
);
const connectionMessages =
  /^(Connection terminated|timeout exceeded when trying to connect|Client has encountered a connection error|There was an error establishing an SSL connection|Query read timeout)/;

/** The state with which a read-only server refuses writes, such as the former primary after a failover. */
const readOnlyState = "25006";
export const deadlockState = "40P01";
const lockTimeoutState = "55P03";

/** Whether a statement waited for a lock longer than `lock_timeout`. */
export function isLockTimeout(error: unknown): boolean {
  return sqlState(error) === lockTimeoutState;
}

/** Whether a statement failed because the server takes no writes, as a standby. */
export function isReadOnly(error: unknown): boolean {
  return sqlState(error) === readOnlyState;
}

/**
 * SQLSTATEs, by class or in full, that are caused by the server or by other sessions and not by the statement: no
 * connection (08), none with this password (28), no such database while one is restored (3D), no connection or disk left
 * (53), starting or stopping (57P), no writes (25006); a statement that took too long (57014), waited too long for a lock
 * (55P03), or was in a deadlock at its last try too (40P01); a transaction that stood still for too long (25P03).
 */
const outageStates = new RegExp(
  `^(?:08|28|3D|53|57P|${readOnlyState}$|57014$|${lockTimeoutState}$|${deadlockState}$|25P03$)`,
);

/**
 * Whether the database is away for now: it cannot be reached, has no certificate that is trusted, has no room, takes no
 * writes, or is too busy to answer in time. The statement may or may not have run.
 */
export function isOutage(error: unknown): boolean {
  if (!(error instanceof Error)) return false;
  const state = sqlState(error);
  if (state !== null) return outageStates.test(state);
  const { code } = error as NodeJS.ErrnoException;
  const isUnreached = code !== undefined && connectionCodes.has(code);
  return isUnreached || connectionMessages.test(error.message) || isCertificateFault(error);
}

/**
 * Whether the table of a statement got other columns since this connection prepared it: the statement did not run, and
 * never will on this connection. PostgreSQL translates its messages, so this is recognised by the name of the routine
 * that failed.
 */
export function isOutdated(error: unknown): boolean {
  return (
    error instanceof DatabaseError &&
    error.code === "0A000" &&
    error.routine === "RevalidateCachedQuery"
  );
}

/** Whether a connection is of no use any more: it leads to the wrong server, or nothing on it will be answered. */
export function isUseless(error: unknown): boolean {
  return (
    isOutdated(error) ||
    isReadOnly(error) ||
    (error instanceof Error && error.message === "Query read timeout")
  );
}

/** Node's codes for faults of a certificate. */
const certificateCodes = /^(?:CERT_|SELF_SIGNED_|DEPTH_ZERO_SELF_SIGNED_|UNABLE_TO_|ERR_TLS_CERT_)/;
/** The driver's message if the server has no certificate. */
const noCertificate = "The server does not support SSL connections";

/** Whether a connection was not made because the server has no certificate, or none that is trusted. */
export function isCertificateFault(error: Error): boolean {
  const { code = "" } = error as NodeJS.ErrnoException;
  return certificateCodes.test(code) || error.message === noCertificate;
}

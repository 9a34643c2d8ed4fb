import type { PoolConfig } from "pg";

const sessionSettings = [
  // A statement that has waited for a lock must read what its former holder left: at a stricter level it would fail.
  "default_transaction_isolation=read\\ committed",
  // Every statement is prepared by name and finds its rows by an index, so it is planned once per connection. If it may
  // choose, PostgreSQL plans statements with joins and lists at each call, which costs more than running them.
  "plan_cache_mode=force_generic_plan",
  // Such a plan knows no values and expects far too many rows of long tables: PostgreSQL would compile it at every run,
  // which takes hundreds of times as long as running it.
  "jit=off",
  // Longer than any call to others inside a transaction takes, such as a signature of a remote signer.
  "idle_in_transaction_session_timeout=15s",
  // A pool's connections are idle for seconds, one that holds a lock for as long as its process lives.
  "idle_session_timeout=0",
  // Escaped bytes take fifteen times as long to read: four seconds for a large order.
  "bytea_output=hex",
  // With other values, fractions lose digits on their way, and nulls mean something else: in an array the text "NULL",
  // in a comparison `is null`.
  "extra_float_digits=1",
  "array_nulls=on",
  "transform_null_equals=off",
  "lock_timeout=5s",
  // With these, the server releases what a process held whose host has vanished. Unix sockets ignore them.
  "tcp_keepalives_idle=15",
  "tcp_keepalives_interval=5",
  "tcp_keepalives_count=3",
  "tcp_user_timeout=30s",
];

/** Set by the driver, so it is not among the options above. */
export const statementTimeoutSeconds = 30;

/**
 * The settings that every session must begin with, as PostgreSQL shows them; without those of TCP, which a Unix socket
 * does not have.
 */
export const settingsNeeded = sessionSettings
  .filter((setting) => !setting.startsWith("tcp_"))
  .map((setting) => setting.replaceAll("\\", ""))
  .concat(`statement_timeout=${statementTimeoutSeconds}s`);

/** Each as an option of the server's command line. */
const sessionOptions = sessionSettings.map((setting) => `-c ${setting}`).join(" ");

/**
 * The connection with the options that every session of the service begins with. For the driver, options in an address
 * override those that are given beside it, so ours are added to the `options` of the address.
 */
export function withSessionOptions({ connectionString, ...rest }: PoolConfig): PoolConfig {
  if (connectionString === undefined) return { ...rest, options: sessionOptions };
  const joined = connectionString.replace(
    /[?&]options=[^&]*/,
    (given) => `${given}%20${encodeURIComponent(sessionOptions)}`,
  );
  return { ...rest, connectionString: joined, options: sessionOptions };
}

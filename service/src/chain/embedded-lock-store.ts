import { Client, type PoolConfig } from "pg";
import type { Queryable } from "../platform/database/db.ts";
import { withSessionOptions } from "../platform/database/session-settings.ts";

/**
 * A separate connection that holds the lock of the embedded chain, or tries to get it. Everything that only the owner
 * may write goes through it: the database drops the lock together with the connection, so a former owner cannot write.
 */
export interface LockSession extends Queryable, AsyncDisposable {
  /** Takes the lock unless another process has it. */
  tryLock(): Promise<boolean>;
  /** Resolves when the connection is gone, whoever ended it. */
  readonly closed: Promise<void>;
}

const connectWithinMs = 10_000;

/**
 * Opens it with the options of the pool's sessions, by which the database ends it half a minute after its host has
 * vanished: then another host can take the lock.
 *
 * @throws if the database cannot be reached
 */
export async function openLockSession(connection: PoolConfig): Promise<LockSession> {
  const client = new Client({
    ...withSessionOptions(connection),
    keepAlive: true,
    connectionTimeoutMillis: connectWithinMs,
  });
  const { promise: closed, resolve } = Promise.withResolvers<void>();
  client.on("error", () => resolve());
  client.on("end", () => resolve());
  await client.connect();
  return {
    closed,
    async tryLock() {
      const { rows } = await client.query<{ locked: boolean }>(
        "select pg_try_advisory_lock(hashtext('embedded-chain')) as locked",
      );
      return rows[0]?.locked === true;
    },
    async query<Row extends object>({
      name,
      text,
      values,
    }: Parameters<Queryable["query"]>[0]): Promise<Row[]> {
      const { rows } = await client.query<Row>({ name, text, values: [...values] });
      return rows;
    },
    [Symbol.asyncDispose]: async () => client.end().catch(() => undefined),
  };
}

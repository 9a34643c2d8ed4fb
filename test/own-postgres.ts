// A PostgreSQL server of a test's own: for tests that kill it, or that hold back what waits for the oldest transaction of
// a server, whichever database that is in.
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { startEmbeddedPostgres } from "../service/src/platform/embedded-postgres/embedded-postgres.ts";
import { clusterParent } from "./cluster-parent.ts";

export interface OwnPostgres extends AsyncDisposable {
  readonly url: string;
  /** Stops what is left of it. */
  stop(): Promise<void>;
  /** Starts it again, on its data. */
  start(): Promise<void>;
}

export async function openOwnPostgres(): Promise<OwnPostgres> {
  const directory = mkdtempSync(join(clusterParent, "svc-own-"));
  // As root the server runs as another user, who has to be able to enter this directory.
  chmodSync(directory, 0o711);
  const place = { directory: join(directory, "postgres"), log: () => undefined };
  let server = await startEmbeddedPostgres(place);
  const { host, port, user, password, database } = server.connection;
  return {
    url: `postgresql://${user}:${password}@localhost/${database}?host=${encodeURIComponent(host)}&port=${port}`,
    stop: async () => server.close(),
    async start() {
      server = await startEmbeddedPostgres(place);
    },
    async [Symbol.asyncDispose]() {
      await server.close();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

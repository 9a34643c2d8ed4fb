import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Db, openDb, sql } from "../service/src/platform/database/db.ts";
import {
  type EmbeddedPostgres,
  startEmbeddedPostgres,
} from "../service/src/platform/embedded-postgres/embedded-postgres.ts";
import { childrenOf, type ClusterProcesses, parentOf } from "./process-accounts.ts";

/** One PostgreSQL for both sides, with the service's own durable settings. */
export interface Cluster extends AsyncDisposable {
  readonly version: string;
  /** Makes an empty database; answers its connection string. */
  createDatabase(name: "service" | "peer"): Promise<string>;
  /**
   * What autovacuum and the checkpointer do on their own time, so that plans are those of a database in use and no
   * operation is charged for it.
   */
  vacuum(): Promise<void>;
  /** The processes that work for a database now, those of {@link asDriver} left out. */
  processesOf(database: "service" | "peer"): Promise<ClusterProcesses>;
}

export async function openCluster(): Promise<Cluster> {
  const directory = await mkdtemp(join(tmpdir(), "svc-bench-"));
  const server = await startEmbeddedPostgres({ directory, log: () => undefined });
  const db = openDb({ ...server.connection, connections: 2 });
  const [about] = await db.query<{ pid: number; version: string }>(sql`
    select pg_backend_pid() as pid, current_setting('server_version') as version`);
  const postmaster = parentOf(about?.pid ?? 0);
  const opened: Db[] = [];
  return {
    version: about?.version ?? "",
    async createDatabase(name) {
      if (name === "service") await db.query(sql`create database service`);
      else await db.query(sql`create database peer`);
      const url = connectionString(server, name);
      const keeper = openDb({ connectionString: url, connections: 1 });
      await keeper.query(sql`set statement_timeout = 0`);
      opened.push(keeper);
      return url;
    },
    async vacuum() {
      for (const each of opened) await each.query(sql`vacuum (analyze)`);
      await db.query(sql`checkpoint`);
    },
    async processesOf(database) {
      const rows = await db.query<{
        pid: number;
        datname: string | null;
        application_name: string;
      }>(sql`
        select pid, datname, application_name from pg_stat_activity where datname is not null`);
      const used = new Set(rows.map(({ pid }) => pid));
      return {
        backends: rows
          .filter((row) => row.datname === database && row.application_name !== driverName)
          .map(({ pid }) => pid),
        background: [postmaster, ...childrenOf(postmaster).filter((pid) => !used.has(pid))],
      };
    },
    [Symbol.asyncDispose]: async () => {
      for (const each of [...opened, db]) await each.close();
      await server.close();
      await removeHome(directory);
    },
  };
}

/**
 * Removes what an embedded PostgreSQL left behind in `directory`. As root it may have kept its data elsewhere; the file
 * `location` says where.
 */
export async function removeHome(directory: string): Promise<void> {
  const elsewhere = await readFile(join(directory, "location"), "utf8").catch(() => null);
  if (elsewhere !== null) await rm(elsewhere.trim(), { recursive: true, force: true });
  await rm(directory, { recursive: true, force: true });
}

const driverName = "bench";

/** The connection string for what prepares and watches a measurement: its backends are not counted. */
export function asDriver(url: string): string {
  return `${url}&application_name=${driverName}`;
}

function connectionString({ connection }: EmbeddedPostgres, database: string): string {
  const { user, password, host, port } = connection;
  return `postgresql://${user}:${password}@/${database}?host=${encodeURIComponent(host)}&port=${port}`;
}

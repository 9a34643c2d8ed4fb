import { randomBytes } from "node:crypto";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { PoolConfig } from "pg";
import { sha256 } from "../cryptography/sha256.ts";
import { openDb } from "./db.ts";
import { startEmbeddedPostgres } from "../embedded-postgres/embedded-postgres.ts";
import { listMigrations, migrate } from "./migrate.ts";
import * as store from "./test-database-store.ts";

/** A database of its own for one test file, dropped at the end. */
export interface TestDatabase extends AsyncDisposable {
  /** For `openDb({ ...connection, connections: 4 })`. */
  readonly connection: PoolConfig;
  /** The same in the form of `DATABASE_URL`. */
  readonly url: string;
}

/** What a test acknowledges does not have to survive a power cut. */
const settings = {
  fsync: "off",
  synchronous_commit: "off",
  full_page_writes: "off",
  max_connections: "300",
};

/** What a database holds in addition to its tables, made once for all processes of a test run. */
export interface Filling {
  /** Goes into the name of its template. */
  readonly name: string;
  /** Fills a migrated database. */
  fill(url: string): Promise<void>;
}

/**
 * Makes a fresh database on the PostgreSQL of this test run: the one of `TEST_DATABASE_URL`, else an embedded one that
 * is started once per process and ends with it. Databases are copies of a template, so a migrated one costs 40 ms.
 *
 * @param options.migrated false makes an empty database, for tests of the migration itself
 * @param options.filling without it a migrated database is empty
 * @param options.choices options of CREATE DATABASE for a database that is not like the server's others; made anew, so it
 * costs a second if it is migrated
 */
export async function openTestDatabase(
  options: { migrated?: boolean; filling?: Filling; choices?: string } = {},
): Promise<TestDatabase> {
  const server = await findServer();
  const name = `svc_test_${randomBytes(8).toString("hex")}`;
  const connection = { ...server, database: name };
  if (options.choices === undefined) {
    const template =
      options.migrated === false ? "template1" : await findTemplate(server, options.filling);
    await store.createDatabase(server, name, template);
  } else {
    await store.createOtherDatabase(server, name, options.choices);
    if (options.migrated !== false) await fill(connection, options.filling);
  }
  return {
    connection,
    url: writeUrl(connection),
    [Symbol.asyncDispose]: async () => store.dropDatabase(server, name),
  };
}

let started: Promise<PoolConfig> | undefined;

async function findServer(): Promise<PoolConfig> {
  const url = process.env["TEST_DATABASE_URL"];
  started ??= url === undefined || url === "" ? startServer() : Promise.resolve(parseUrl(url));
  return started;
}

async function startServer(): Promise<PoolConfig> {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-"));
  // As root the server runs as another user, who has to reach its data.
  await chmod(directory, 0o711);
  const server = await startEmbeddedPostgres({
    directory: join(directory, "postgres"),
    log: () => undefined,
    settings,
  });
  // Called when everything that this process had to do is done; open handles of the server do not count.
  const stop = async (): Promise<void> => {
    await server.close();
    await rm(directory, { recursive: true, force: true });
  };
  process.once("beforeExit", () => void stop());
  return server.connection;
}

/** `postgresql://user:password@localhost/database?host=<socket directory>&port=5432` */
function parseUrl(text: string): PoolConfig {
  const url = new URL(text);
  const port = url.searchParams.get("port") ?? (url.port === "" ? "5432" : url.port);
  return {
    host: url.searchParams.get("host") ?? url.hostname,
    port: Number(port),
    user: decodeURIComponent(url.username),
    password: decodeURIComponent(url.password),
    database: decodeURIComponent(url.pathname.slice(1)),
  };
}

/** The socket's directory is a parameter, because it cannot be in the place of a host name. */
function writeUrl({
  host = "",
  port = 5432,
  user = "",
  password,
  database = "",
}: PoolConfig): string {
  const secret = typeof password === "string" ? `:${encodeURIComponent(password)}` : "";
  const login = `${encodeURIComponent(user)}${secret}`;
  return `postgresql://${login}@localhost:${port}/${database}?host=${encodeURIComponent(host)}`;
}

const templates = new Map<string, Promise<string>>();

/** One template per state of the migrations and filling; the processes of a test run share it. */
async function findTemplate(server: PoolConfig, filling: Filling | undefined): Promise<string> {
  const state = JSON.stringify(listMigrations().map((each) => [each.name, each.sha256]));
  const digest = sha256(state).toString("hex").slice(0, 16);
  const name = `svc_template_${digest}${filling === undefined ? "" : `_${filling.name}`}`;
  const known = templates.get(name) ?? makeTemplate(server, name, filling);
  templates.set(name, known);
  return known;
}

async function makeTemplate(
  server: PoolConfig,
  name: string,
  filling: Filling | undefined,
): Promise<string> {
  await store.createDatabaseOnce(server, name, async (database) => {
    await fill({ ...server, database }, filling);
  });
  return name;
}

async function fill(connection: PoolConfig, filling: Filling | undefined): Promise<void> {
  await using db = openDb({ ...connection, connections: 1 });
  await migrate(db);
  await filling?.fill(writeUrl(connection));
}

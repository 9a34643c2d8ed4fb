import { escapeIdentifier, Pool, type PoolClient, type PoolConfig } from "pg";

/**
 * Pools by the server's address: a connection costs as much as a database, so a process keeps those that it has opened.
 */
const pools = new Map<string, Pool>();

function poolOf(server: PoolConfig): Pool {
  const address = `${server.host}:${server.port}`;
  const known = pools.get(address);
  if (known !== undefined) return known;
  const pool = new Pool({ ...server, max: 4, idleTimeoutMillis: 0, allowExitOnIdle: true });
  // The server of this process ends before the process does, and these connections with it.
  pool.on("error", () => undefined);
  pools.set(address, pool);
  return pool;
}

async function withClient<T>(
  server: PoolConfig,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await poolOf(server).connect();
  try {
    return await work(client);
  } finally {
    client.release();
  }
}

/** Names are made by the tests themselves. Copying files takes a third of the time of copying pages through the WAL. */
async function create(client: PoolClient, name: string, template: string): Promise<void> {
  await client.query(
    `create database ${escapeIdentifier(name)} template ${escapeIdentifier(template)} strategy file_copy`,
  );
}

export async function createDatabase(
  server: PoolConfig,
  name: string,
  template: string,
): Promise<void> {
  await withClient(server, async (client) => create(client, name, template));
}

/** @param choices options of CREATE DATABASE, such as `encoding latin1` */
export async function createOtherDatabase(
  server: PoolConfig,
  name: string,
  choices: string,
): Promise<void> {
  const text = `create database ${escapeIdentifier(name)} template template0 ${choices}`;
  await withClient(server, async (client) => client.query(text));
}

/** Ends sessions that a test forgot. */
export async function dropDatabase(server: PoolConfig, name: string): Promise<void> {
  await withClient(server, async (client) =>
    client.query(`drop database if exists ${escapeIdentifier(name)} with (force)`),
  );
}

/** Any fixed number will do. */
const templateLock = 7_355_090;

/** Creates and fills a database unless it exists. It gets its name when it is complete, so a killed attempt leaves none. */
export async function createDatabaseOnce(
  server: PoolConfig,
  name: string,
  fill: (database: string) => Promise<void>,
): Promise<void> {
  await withClient(server, async (client) => {
    await client.query("select pg_advisory_lock($1)", [templateLock]);
    try {
      const found = await client.query("select from pg_database where datname = $1", [name]);
      if (found.rows.length > 0) return;
      const draft = `${name}_draft`;
      await client.query(`drop database if exists ${escapeIdentifier(draft)} with (force)`);
      await create(client, draft, "template1");
      await fill(draft);
      await client.query(
        `alter database ${escapeIdentifier(draft)} rename to ${escapeIdentifier(name)}`,
      );
    } finally {
      await client.query("select pg_advisory_unlock($1)", [templateLock]);
    }
  });
}

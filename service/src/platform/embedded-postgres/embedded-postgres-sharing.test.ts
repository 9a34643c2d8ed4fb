// Verbs on one directory, with no service that runs its server: one of them starts it for all.
import assert from "node:assert/strict";
import { chmod, copyFile, mkdir, mkdtemp, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, test } from "node:test";
import { Client } from "pg";
import {
  type EmbeddedPostgres,
  findEmbeddedPostgres,
  shareEmbeddedPostgres,
  startEmbeddedPostgres,
} from "./embedded-postgres.ts";
import { removeSocketDirectory } from "./embedded-postgres-files.ts";
import { clusterParent } from "../../../../test/cluster-parent.ts";
import { until } from "../../../../test/patience.ts";

type Shared = Pick<EmbeddedPostgres, "connection" | "close">;

const parent = await mkdtemp(join(clusterParent, "svc-test-"));
await chmod(parent, 0o755);
after(async () => rm(parent, { recursive: true, force: true }));
const directory = join(parent, "postgres");

const share = async (): Promise<Shared> =>
  shareEmbeddedPostgres({ directory, log: () => undefined });

async function canAsk({ connection }: Shared): Promise<boolean> {
  const client = new Client(connection);
  await client.connect();
  const { rows } = await client.query("select");
  await client.end();
  return rows.length === 1;
}

async function postmasterPid(): Promise<number> {
  return Number.parseInt(await readFile(join(directory, "data/postmaster.pid"), "utf8"), 10);
}

/** As the system lists them: asking the server would open another one. */
async function countSessions(): Promise<number> {
  const pid = await postmasterPid();
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8");
  const lines = await Promise.all(
    children
      .trim()
      .split(" ")
      .map(async (child) => readFile(`/proc/${child}/cmdline`, "utf8").catch(() => "")),
  );
  return lines.filter((line) => line.includes("[local]")).length;
}

test("two that may share start at once on a fresh directory, and have one server", async () => {
  const [first, second] = await Promise.all([share(), share()]);
  assert.deepEqual(first.connection, second.connection);
  assert.equal(await canAsk(second), true);
  await Promise.all([first.close(), second.close()]);
  assert.equal(await findEmbeddedPostgres(directory), null);
});

test(
  "the process that started a shared server keeps it running until the others end",
  { skip: process.platform !== "linux" },
  async () => {
    const [first, second] = [await share(), await share()];
    const closing = first.close();
    // Its own session, beside the one that it waits for.
    await until("it asks who is left", async () => ((await countSessions()) > 1 ? true : null));
    assert.equal(await canAsk(second), true);
    await second.close();
    await closing;
    assert.equal(await findEmbeddedPostgres(directory), null);
  },
);

test("a copy made while the server runs neither leads to it nor takes its socket away", async () => {
  const original = await share();
  const copy = join(parent, "copy");
  await mkdir(join(copy, "data"), { recursive: true });
  // The file that names the server's socket.
  for (const name of ["password", "socket-directory"])
    await copyFile(join(directory, name), join(copy, name));
  assert.equal(await findEmbeddedPostgres(copy), null);
  // As a start on the copy does.
  await removeSocketDirectory(join(copy, "data"), original.connection.host);
  assert.equal(await canAsk(original), true);
  await original.close();
});

test("a server that ended by itself is started again, also after tries that failed", async () => {
  const lines: string[] = [];
  const server = await startEmbeddedPostgres({ directory, log: (line) => lines.push(line) });
  // While this is away it cannot start, as on a full disk.
  const needed = join(directory, "data/global");
  await rename(needed, `${needed}.away`);
  process.kill(await postmasterPid(), "SIGKILL");
  const hasFailed = (): boolean => lines.some((line) => line.includes("does not start again"));
  await until("a start that failed", async () => (hasFailed() ? true : null));
  await rename(`${needed}.away`, needed);
  const isBack = async (): Promise<boolean> => canAsk(server).catch(() => false);
  await until("the server is back", async () => ((await isBack()) ? true : null));
  await server.close();
  assert.equal(await findEmbeddedPostgres(directory), null);
});

test("a server that is closed while it recovers is not waited for", async () => {
  const lines: string[] = [];
  const server = await startEmbeddedPostgres({ directory, log: (line) => lines.push(line) });
  // A standby recovers for as long as it runs.
  await writeFile(join(directory, "data/standby.signal"), "");
  process.kill(await postmasterPid(), "SIGKILL");
  const isRecovering = (): boolean => lines.some((line) => line.includes("entering standby mode"));
  // A timer keeps this process alive, which the server does not.
  await until("it recovers", async () => (isRecovering() ? true : null));
  const before = performance.now();
  await server.close();
  assert.ok(performance.now() - before < 20_000);
  assert.equal(await findEmbeddedPostgres(directory), null);
});

// The database dies under the service and comes back: callers are told to try again, and nothing acknowledged is lost.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import {
  approveByQr,
  authorizationUrl,
  finish,
  makePkce,
  openPage,
  redeem,
  statusOf,
} from "../login-flow.ts";
import { type OwnPostgres, openOwnPostgres } from "../own-postgres.ts";
import { newIdentity } from "../raw-wallet.ts";
import { isWithin, until } from "../patience.ts";
import { openWorld, type World } from "../world.ts";

let server: OwnPostgres;
let world: World;

before(async () => {
  server = await openOwnPostgres();
  world = await openWorld({ DATABASE_URL: server.url });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await server[Symbol.asyncDispose]();
});

/** Stops every process of the server: it then accepts connections and answers nothing. @returns a function to resume */
async function hangDatabase(): Promise<() => void> {
  const postmaster = await postmasterPid();
  const backends = await world.ctx.db.transaction(async (tx) => {
    // Stopped first, so that no new backend appears after the list is made.
    process.kill(postmaster, "SIGSTOP");
    return tx.query<{ pid: number }>(
      sql`select pid from pg_stat_activity where backend_type = 'client backend'`,
    );
  });
  for (const { pid } of backends) process.kill(pid, "SIGSTOP");
  return () =>
    [postmaster, ...backends.map(({ pid }) => pid)].forEach((pid) => process.kill(pid, "SIGCONT"));
}

async function postmasterPid(): Promise<number> {
  const [data] = await world.ctx.db.query<{ path: string }>(
    sql`select current_setting('data_directory') as path`,
  );
  return Number(readFileSync(join(data?.path ?? "", "postmaster.pid"), "utf8").split("\n")[0]);
}

/** kill -9 of the whole server, as a power cut would; the shell that watches over it then ends by itself. */
async function crashDatabase(): Promise<void> {
  const pid = await postmasterPid();
  process.kill(pid, "SIGKILL");
  await server.stop();
}

test("while the database hangs the process says within seconds that it is not ready", async () => {
  const goOn = await hangDatabase();
  try {
    const ask = async (): Promise<void> =>
      assert.equal((await fetch(`${world.baseUrl}/health/ready`)).status, 503);
    assert.ok(await isWithin(8_000, ask));
  } finally {
    goOn();
  }
  await until("it is ready again", async () => ((await isReady()) ? true : null));
});

async function isReady(): Promise<boolean> {
  return (await fetch(`${world.baseUrl}/health/ready`)).status === 200;
}

/** Outside of any transaction, because PostgreSQL refuses ALTER SYSTEM inside one. */
async function alterSystem(change: string): Promise<void> {
  await world.ctx.db.query({ name: "", text: `alter system ${change}`, values: [] });
  await world.ctx.db.query(sql`select pg_reload_conf()`);
}

test("while the database only reads, as one that was replaced, the process says that it is not ready", async () => {
  await alterSystem("set default_transaction_read_only = on");
  await until("it is not ready", async () => ((await isReady()) ? null : true));
  await alterSystem("reset default_transaction_read_only");
  await until("it is ready again", async () => ((await isReady()) ? true : null));
});

test("while the database is away every route says 503 and when to ask again, and afterwards the login goes on", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  await crashDatabase();
  const ready = await fetch(`${world.baseUrl}/health/ready`);
  assert.equal(ready.status, 503);
  const status = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/status`);
  assert.equal(status.status, 503);
  const envelope = (await status.json()) as { error: { reason: string } };
  assert.equal(envelope.error.reason, "unavailable");
  const token = await redeem(world.baseUrl, world.client, {
    code: "x",
    verifier: page.pkce.verifier,
  });
  assert.equal(token.status, 503);
  assert.equal(((await token.json()) as { error: string }).error, "temporarily_unavailable");
  const shown = await fetch(authorizationUrl(world.baseUrl, world.client, makePkce()));
  for (const answer of [ready, status, token, shown])
    assert.deepEqual([answer.status, answer.headers.get("retry-after")], [503, "1"], answer.url);

  await server.start();
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  assert.equal(
    (await redeem(world.baseUrl, world.client, { code, verifier: page.pkce.verifier })).status,
    200,
  );
});

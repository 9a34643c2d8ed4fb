// What two processes full of orders stand on dies under them: the database, killed and started again as after a power
// cut, and the node of the embedded chain with all its blocks. What was acknowledged is there, everything ends, and
// nothing is doubled. The processes stay up all the time.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { sql } from "../../service/src/platform/database/db.ts";
import { nodePid } from "../embedded-chain.ts";
import { openKillableOrders } from "../killable-orders.ts";
import { checkOrders } from "../order-invariants.ts";
import { untilOver } from "../order-traffic.ts";
import { openOwnPostgres } from "../own-postgres.ts";
import { until } from "../patience.ts";

const crashesTotal = 3;
const betweenMs = 1500;
const deathsTotal = 5;

test(`${crashesTotal} crashes of the database, and ${deathsTotal} deaths of the chain's node, under load lose and double nothing`, async (t) => {
  await using stack = new AsyncDisposableStack();
  const database = stack.use(await openOwnPostgres());
  const world = stack.use(
    await openKillableOrders({ persons: 1, packages: 12 }, { DATABASE_URL: database.url }),
  );
  const { ctx, traffic, asked } = world;
  const processes = [await world.startMain(), await world.startOther()];
  const [data] = await ctx.db.query<{ path: string }>(
    sql`select current_setting('data_directory') as path`,
  );
  const ending = new AbortController();
  const load = Promise.all(
    asked.map(async (each) => {
      for (let round = 0; round < 2 || !ending.signal.aborted; round += 1) {
        const requested = await traffic.ask(each);
        await traffic.approve(requested, await traffic.open(each.person, requested.link));
      }
    }),
  );
  load.catch(() => undefined);
  for (let crash = 0; crash < crashesTotal; crash += 1) {
    await delay(betweenMs);
    // kill -9 of the server, as a power cut would; the shell that watches over it then ends by itself.
    const lines = readFileSync(join(data?.path ?? "", "postmaster.pid"), "utf8").split("\n");
    process.kill(Number(lines[0]), "SIGKILL");
    await database.stop();
    await database.start();
  }
  let killed = 0;
  for (let death = 0; death < deathsTotal; death += 1) {
    const pid = await until("another node runs", async () => {
      const found = await nodePid({ ctx }).catch(() => killed);
      return found === killed ? null : found;
    });
    await delay(300);
    process.kill(pid, "SIGKILL");
    killed = pid;
  }
  ending.abort();
  await load;
  await untilOver(world);
  const tally = await checkOrders(world.evidence);
  t.diagnostic(JSON.stringify(tally));
  assert.ok(tally.confirmed > asked.length, JSON.stringify(tally));
  for (const { pid } of processes) process.kill(pid, 0);
});

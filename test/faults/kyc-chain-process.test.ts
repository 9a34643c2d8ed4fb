// The node of the embedded chain is killed with all its blocks, again and again, under orders: it comes back whole, and
// nothing is lost or doubled.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { nodePid } from "../embedded-chain.ts";
import { until } from "../patience.ts";
import { openKillableOrders } from "../killable-orders.ts";
import { checkOrders } from "../order-invariants.ts";
import { untilOver } from "../order-traffic.ts";

const killsTotal = 5;

test(`${killsTotal} deaths of the chain's node under load lose and double no order`, async () => {
  await using world = await openKillableOrders({ persons: 1, packages: 8 });
  const { ctx, traffic, asked } = world;
  const server = await world.startMain();
  const ending = new AbortController();
  const load = Promise.all(
    asked.map(async (each) => {
      while (!ending.signal.aborted) {
        const requested = await traffic.ask(each);
        await traffic.approve(requested, await traffic.open(each.person, requested.link));
      }
    }),
  );
  load.catch(() => undefined);
  let killed = 0;
  for (let kill = 0; kill < killsTotal; kill += 1) {
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
  assert.ok(tally.confirmed >= asked.length, JSON.stringify(tally));
  process.kill(server.pid, 0);
});

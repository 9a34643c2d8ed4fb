// Two processes under load, and one of them is killed at a moment of chance, twenty times. Merchants, wallets and the
// receiver go on; afterwards nothing is lost or doubled.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openKillableOrders } from "../killable-orders.ts";
import { checkOrders } from "../order-invariants.ts";
import { type Asked, type Traffic, untilOver } from "../order-traffic.ts";

const killsTotal = 20;
/** The longest time from ready to killed. */
const livesMsMax = 300;

/** Plays one attempt of an order: the first is approved, later ones end at random. */
async function runOrder(traffic: Traffic, asked: Asked, attempt: number): Promise<void> {
  const requested = await traffic.ask(asked);
  const end = attempt === 1 ? null : randomInt(10);
  if (end === 0) return traffic.decline(requested);
  if (end === 1) return traffic.cancel(requested);
  return traffic.approve(requested, await traffic.open(asked.person, requested.link));
}

test(`${killsTotal} kills of two processes under load lose and double nothing`, async (t) => {
  await using world = await openKillableOrders({ persons: 1, packages: 12 });
  const { traffic, asked } = world;
  // One delivery in twenty fails and is retried.
  traffic.answer((response) => {
    if (randomInt(20) === 0) response.statusCode = 500;
    response.end();
  });
  const ending = new AbortController();
  const customers = asked.map(async (each) => {
    for (let attempt = 1; !ending.signal.aborted; attempt += 1) {
      await runOrder(traffic, each, attempt);
      await delay(randomInt(100));
    }
  });
  const load = Promise.all(customers);
  load.catch(() => undefined);
  const starts = [async () => world.startMain(), async () => world.startOther()];
  const processes = await Promise.all(starts.map(async (start) => start()));
  let kills = 0;
  await Promise.all(
    starts.map(async (start, at) => {
      for (;;) {
        await delay(randomInt(livesMsMax));
        if (kills === killsTotal) return;
        kills += 1;
        await processes[at]?.kill();
        processes[at] = await start();
      }
    }),
  );
  ending.abort();
  await load;
  traffic.answer((response) => void response.end());
  await untilOver(world);
  const tally = await checkOrders(world.evidence);
  t.diagnostic(JSON.stringify(tally));
  assert.ok(tally.confirmed >= asked.length, JSON.stringify(tally));
});

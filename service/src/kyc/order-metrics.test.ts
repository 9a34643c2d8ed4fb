// The gauges of orders that are delayed.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { createMetrics } from "../platform/telemetry/metrics.ts";
import { openOrderMetrics } from "./order-metrics.ts";
import { settleOrders } from "./settlement.ts";
import { tryLockBatches } from "./settlement-store.ts";

await using settlement = await openTestSettlement();
const { ctx, world } = settlement;
const metrics = createMetrics();
openOrderMetrics({ ...ctx, metrics });

async function scrape(): Promise<string | undefined> {
  const text = await metrics.registry.metrics();
  return /^orders_oldest_waiting_seconds (\S+)$/m.exec(text)?.[1];
}

await test("the gauge shows how long an order waits whose batch is delayed by a lock", async () => {
  assert.equal(await scrape(), "0");
  await settlement.approve(1);
  await ctx.db.transaction(async (tx) => {
    assert.equal(await tryLockBatches(tx), true);
    world.advance(2400);
    await settleOrders(ctx);
    assert.deepEqual(await settlement.mine(), []);
    assert.equal(await scrape(), "2400");
  });
});

await test("the gauge shows how long an order has waited for its batch to be final, and then for its hand-over", async () => {
  await settleOrders(ctx);
  world.advance(100);
  assert.equal(await scrape(), "2500");
  await settlement.mine();
  world.advance(60);
  assert.equal(await scrape(), "60");
  await settleOrders(ctx);
  assert.equal(await scrape(), "0");
});

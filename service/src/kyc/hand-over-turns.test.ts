// Orders with large values that wait to be handed over, and how others fare meanwhile.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import type { TestOrder } from "../../../test/approved-orders-store.ts";
import { sql } from "../platform/database/db.ts";
import { settleOrders } from "./settlement.ts";
import { takeInitiated } from "./settlement-store.ts";

await using settlement = await openTestSettlement({ SETTLEMENT_WINDOW_SECONDS: "0" });
const { ctx } = settlement;
/** Two of these exceed the bytes of one hand-over. */
const large = "A".repeat(8 * 1024 * 1024 + 1);

/** Approves orders. @param isOfAnother whether they belong to a new organization */
async function approve(count: number, isOfAnother: boolean): Promise<TestOrder[]> {
  const orders = await settlement.approve(count, { isUnsigned: true });
  const ids = orders.map(({ id }) => id);
  if (isOfAnother)
    await ctx.db.query(
      sql`update kyc_order set organization_id = ${randomUUID()} where id = any(${ids}::uuid[])`,
    );
  return orders;
}

async function initiate(): Promise<void> {
  await settleOrders(ctx);
  await settlement.mine();
}

await test("a batch that is due is closed between hand-overs, however many of them wait", async () => {
  const waiting = await settlement.approve(3, { infos: large });
  await initiate();
  await approve(1, true);
  await settleOrders(ctx);
  const queued = await ctx.db.query<{ kind: string }>(
    sql`select kind from chain_transaction where status = 'queued' order by id`,
  );
  assert.deepEqual(
    queued.map(({ kind }) => kind),
    ["kyc.confirm", "kyc.initiate", "kyc.confirm", "kyc.confirm"],
  );
  await settlement.mine();
  for (const order of waiting) assert.equal(await settlement.statusOf(order), "CONFIRMED");
  await initiate();
});

await test("the first orders of an organization are handed over before another's hundredth", async () => {
  await approve(100, false);
  const later = await approve(2, true);
  const laterIds = new Set(later.map(({ id }) => id));
  await initiate();
  await ctx.db.query(
    sql`update kyc_order set status_at = status_at + 1 where id = any(${[...laterIds]}::uuid[])`,
  );
  const take = async (limit: number, bytesMax = 1e9) =>
    ctx.db.transaction(async (tx) => takeInitiated(tx, { limit, bytesMax, except: [] }));
  const [one, few, all] = [await take(1), await take(4), await take(202)];
  const turnsOf = ({ orders }: typeof few) => orders.map(({ id }) => laterIds.has(id));
  assert.deepEqual(turnsOf(one), [false]);
  assert.deepEqual(turnsOf(few), [false, true, false, true]);
  assert.deepEqual(turnsOf(all).slice(0, 5), [false, true, false, true, false]);
  assert.deepEqual([one.hasMore, few.hasMore, all.hasMore], [true, true, false]);
  const larger = await take(202, 1);
  assert.deepEqual([larger.orders.length, larger.hasMore], [1, true], "a large one goes alone");
});

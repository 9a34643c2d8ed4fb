// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import type { TestOrder } from "../../../test/approved-orders-store.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { getPackage } from "../accounts/index.ts";
import { sql } from "../platform/database/db.ts";
import { steps } from "./order.ts";
import type { Order } from "./order-row.ts";
import {
  beginAttempt,
  findOrder,
  hasExpired,
  holdTransfer,
  listExpiredOf,
  lockExpired,
  lockExpiredAmong,
  renewPending,
} from "./order-store.ts";
import { requestOrder } from "./orders.ts";
import { settleOrders } from "./settlement.ts";
import { moveOrders } from "./transitions.ts";

await using settlement = await openTestSettlement();
const { ctx, packageId, user, world } = settlement;
const salt = `0x${"5a".repeat(32)}` as const;

async function approveOne(): Promise<Order> {
  const [made] = (await settlement.approve(1)) as [TestOrder];
  const order = await findOrder(ctx.db, made.referenceKey);
  assert.ok(order !== null);
  return order;
}

await test("a transfer is held while those that are held and spent are fewer than were bought", async () => {
  const bought = await ctx.db.query<{ total: number; held: number; spent: number }>(sql`
    select transfers_total as total, transfers_held as held, transfers_consumed as spent from kyc_package
    where id = ${packageId}`);
  const set = async (total: number, held: number, spent: number): Promise<unknown> =>
    ctx.db.query(sql`
      update kyc_package set transfers_total = ${total}, transfers_held = ${held}, transfers_consumed = ${spent}
      where id = ${packageId}`);
  await set(3, 1, 1);
  assert.equal(await holdTransfer(ctx.db, packageId), true);
  assert.equal(await holdTransfer(ctx.db, packageId), false);
  await set(2, 0, 2);
  assert.equal(await holdTransfer(ctx.db, packageId), false, "all are spent");
  await set(2, 2, 0);
  assert.equal(await holdTransfer(ctx.db, packageId), false, "all are held");
  for (const { total, held, spent } of bought) await set(total, held, spent);
});

await test("an order waits through the last second of its time", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const expiration = ctx.clock.now() + 600;
  const callback = "https://shop.example.com/hook";
  const asked = { user, sourceKey, callback, expiration, fields: ["EMAIL"] };
  const { order } = await requestOrder(ctx, key, asked);
  assert.deepEqual(await lockExpired(ctx.db, expiration, 9), []);
  assert.deepEqual(await lockExpiredAmong(ctx.db, [order.id], expiration), []);
  assert.deepEqual(await listExpiredOf(ctx.db, key.clientDomainId, expiration), []);
  assert.equal(await hasExpired(ctx.db, expiration), false);
  const over = [{ id: order.id, attempt: 1 }];
  assert.deepEqual(await lockExpired(ctx.db, expiration + 1, 9), over);
  assert.deepEqual(await lockExpiredAmong(ctx.db, [order.id], expiration + 1), over);
  assert.deepEqual(await listExpiredOf(ctx.db, key.clientDomainId, expiration + 1), [order.id]);
  const other = await ctx.apiKeys.authenticate(world.sandbox.apiKey);
  assert.deepEqual(await listExpiredOf(ctx.db, other.clientDomainId, expiration + 1), []);
  assert.equal(await hasExpired(ctx.db, expiration + 1), true);
});

await test("the next attempt begins when the previous one has ended, and keeps nothing of it", async () => {
  const order = await approveOne();
  const again = async (): Promise<Order> =>
    beginAttempt(ctx.db, { ...order, salt }, ctx.clock.now());
  await assert.rejects(again, /has ended/, "it is INITIATING");
  await settlement.closeBatch();
  await settlement.mine();
  await assert.rejects(again, /has ended/, "it is INITIATED");
  await settleOrders(ctx);
  await assert.rejects(again, /has ended/, "it is CONFIRMING");
  await settlement.mine();
  await ctx.db.query(sql`
    update kyc_order set mismatches = 3, scanned_at = ${ctx.clock.now()} where id = ${order.id}`);
  const next = await again();
  assert.deepEqual(
    [next.attempt, next.status, next.mismatches, next.scannedAt, next.salt],
    [2, "PENDING", 0, null, salt],
  );
  assert.deepEqual([next.initiatedTxHash, next.confirmTxHash], [null, null]);
  const batches = await ctx.db.query(sql`
    select approved_at, initiate_batch_id, confirm_batch_id from kyc_order where id = ${order.id}`);
  assert.deepEqual(batches, [
    { approved_at: null, initiate_batch_id: null, confirm_batch_id: null },
  ]);
});

await test("callback and expiration of an order can change only while it is pending", async () => {
  const order = await approveOne();
  const renewal = { id: order.id, callback: "https://shop.example.com/other", expiration: 1 };
  await assert.rejects(renewPending(ctx.db, renewal), /is PENDING/);
  await ctx.db.transaction(async (tx) =>
    moveOrders(ctx, tx, { orders: [order], step: steps.overdue, at: ctx.clock.now() }),
  );
  await assert.rejects(renewPending(ctx.db, renewal), /is PENDING/);
  assert.equal((await findOrder(ctx.db, order.referenceKey))?.callback, order.callback);
});

await test("expired orders are locked by id, so that two processes that lock several cannot deadlock", async () => {
  const ids = (await settlement.approve(2)).map(({ id }) => id).toSorted();
  const [first = "", last = ""] = ids;
  await ctx.db.query(sql`
    update kyc_order set status = 'PENDING', expiration = case when id = ${last} then 1 else 2 end
    where id = any(${ids}::uuid[])`);
  const { ending } = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_order where id = ${first} for update`);
    const locked = ctx.db.transaction(async (other) => lockExpiredAmong(other, [last, first], 3));
    await untilBlocked(ctx.db, tx, [locked]);
    const free = await ctx.db.query(
      sql`select id from kyc_order where id = ${last} for update skip locked`,
    );
    assert.deepEqual(free, [{ id: last }]);
    return { ending: locked };
  });
  const held = await ending;
  assert.deepEqual(
    held.map(({ id }) => id),
    ids,
  );
});

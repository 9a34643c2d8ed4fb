// What a batch must not take along: other attempts, orders that somebody else holds, values of which one no longer
// counts. And of two ends of one order at the same instant, the second.
import assert from "node:assert/strict";
import { test } from "node:test";
import { hexOfBytes, type Hex32 } from "@svc/protocol";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { listBatches, readTransfers, type TestOrder } from "../../../test/approved-orders-store.ts";
import { untilBlocked, untilOverOrBlocked } from "../../../test/lock-waits.ts";
import { sql } from "../platform/database/db.ts";
import { insertConsent } from "./consent-store.ts";
import { listHandedOver } from "./handed-over-store.ts";
import { steps } from "./order.ts";
import { beginAttempt, findOrder, holdTransfer } from "./order-store.ts";
import { findSettled } from "./receipt-store.ts";
import { settleOrders } from "./settlement.ts";
import { tryLockBatches } from "./settlement-store.ts";
import { moveOrders } from "./transitions.ts";

await using test1 = await openTestSettlement();
const { ctx, world, closeBatch, statusOf, packageId, organizationId, user } = test1;

const bytesOf = (leaf: Hex32): Buffer => Buffer.from(leaf.slice(2), "hex");
const unknownLeaf: Hex32 = `0x${"d1".repeat(32)}`;

/** The next attempt of an order that has ended, approved as the first one was. */
async function approveAgain({ referenceKey, consent }: TestOrder): Promise<void> {
  const order = await findOrder(ctx.db, referenceKey);
  assert.ok(order !== null);
  const salt = hexOfBytes(ctx.random.bytes(32));
  const at = ctx.clock.now();
  await ctx.db.transaction(async (tx) => {
    const next = await beginAttempt(tx, { ...order, salt }, at);
    assert.ok(await holdTransfer(tx, packageId));
    await moveOrders(ctx, tx, { orders: [next], step: steps.approved, at });
    await insertConsent(tx, { ...consent, attempt: next.attempt, createdAt: at });
  });
}

await test("an order that is approved again is anchored once and handed over as it was approved last", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  await test1.mine("reverted");
  assert.equal(await statusOf(order), "FAILED INITIATE_TX_FAILED");
  // As if the first approval had contained other leaves.
  await ctx.db.query(sql`
    update kyc_consent set leaves = ${[bytesOf(unknownLeaf)]}::bytea[] where order_id = ${order.id}`);
  await approveAgain(order);
  const older = new Set((await listBatches(ctx.db)).map(({ id }) => id));
  await closeBatch();
  await test1.mine();
  await settleOrders(ctx);
  await test1.mine();
  assert.equal(await statusOf(order), "CONFIRMED");
  const made = (await listBatches(ctx.db)).filter(({ id }) => !older.has(id));
  assert.deepEqual(
    made.map(({ leavesCount }) => leavesCount),
    [2, 2],
  );
  const asked = { user, fields: ["EMAIL" as const] };
  const held = await listHandedOver(ctx.db, organizationId, asked);
  assert.deepEqual(held, order.consent.leaves, "the first attempt handed nothing over");
});

await test("the receipt of each attempt names its own batches", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  const confirm = async (): Promise<void> => {
    await closeBatch();
    await test1.mine();
    await settleOrders(ctx);
    await test1.mine();
    assert.equal(await statusOf(order), "CONFIRMED");
  };
  await confirm();
  await approveAgain(order);
  await confirm();
  const made = (await listBatches(ctx.db)).slice(-4).map(({ id }) => id);
  const named: unknown[] = [];
  for (const attempt of [1, 2]) {
    const settled = await findSettled(ctx.db, order.id, attempt);
    assert.equal(settled?.attempt, attempt);
    named.push(settled.initiate.id, settled.confirm?.id);
  }
  assert.deepEqual(named, made);
  assert.equal((await findSettled(ctx.db, order.id, null))?.attempt, 2, "the newest one");
});

await test("an order with a single invalid leaf is not handed over", async () => {
  const before = await readTransfers(ctx.db, packageId);
  const [order] = (await test1.approve(1)) as [TestOrder];
  await ctx.db.query(sql`
    update kyc_consent set fields = fields || 'PHONE'::text, leaves = leaves || ${bytesOf(unknownLeaf)}::bytea
    where order_id = ${order.id}`);
  await closeBatch();
  await test1.mine();
  await settleOrders(ctx);
  assert.equal(await statusOf(order), "FAILED FIELD_REVOKED");
  assert.deepEqual(await readTransfers(ctx.db, packageId), before);
});

await test("a batch skips an order that another transaction has locked, without waiting", async () => {
  const [held, free] = (await test1.approve(2)) as [TestOrder, TestOrder];
  world.advance(ctx.config.settlementWindowSeconds);
  const batchOf = async ({ id }: TestOrder): Promise<string | null> => {
    const [row] = await ctx.db.query<{ batch: string | null }>(
      sql`select initiate_batch_id as batch from kyc_order where id = ${id}`,
    );
    return row?.batch ?? null;
  };
  const { settling } = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_order where id = ${held.id} for update`);
    const begun = settleOrders(ctx);
    assert.equal(await untilOverOrBlocked(ctx.db, tx, begun), "over");
    return { settling: begun };
  });
  await settling;
  assert.deepEqual([await batchOf(held), await statusOf(held)], [null, "INITIATING"]);
  assert.notEqual(await batchOf(free), null);
  await settleOrders(ctx);
  assert.notEqual(await batchOf(held), null);
});

await test("one process at a time makes batches, and the others do not wait", async () => {
  const made = (await listBatches(ctx.db)).length;
  await test1.approve(1);
  world.advance(ctx.config.settlementWindowSeconds);
  await ctx.db.transaction(async (tx) => {
    assert.equal(await tryLockBatches(tx), true);
    await settleOrders(ctx);
  });
  assert.equal((await listBatches(ctx.db)).length, made);
  await settleOrders(ctx);
  assert.equal((await listBatches(ctx.db)).length, made + 1);
});

await test("of two concurrent transitions of an order only the first is made", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  const { held } = await readTransfers(ctx.db, packageId);
  const change = async (trigger: "initiate-final" | "overdue"): Promise<number> =>
    ctx.db.transaction(async (tx) => {
      const orders = [{ id: order.id, attempt: 1 }];
      const moved = await moveOrders(ctx, tx, {
        orders,
        step: steps[trigger],
        at: ctx.clock.now(),
      });
      return moved.length;
    });
  const { changes } = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_order where id = ${order.id} for update`);
    const first = change("overdue");
    await untilBlocked(ctx.db, tx, [first]);
    const second = change("initiate-final");
    await untilBlocked(ctx.db, tx, [first, second]);
    return { changes: Promise.all([first, second]) };
  });
  assert.deepEqual(await changes, [1, 0]);
  assert.equal(await statusOf(order), "FAILED INITIATE_TX_FAILED");
  assert.equal((await readTransfers(ctx.db, packageId)).held, held - 1);
});

/** Orders of two packages that become final together, in one batch per package, that of the second package first. */
async function sendInTwoBatches(packages: readonly [string, string]): Promise<TestOrder[]> {
  const orders: TestOrder[] = [];
  for (const id of packages.toReversed()) {
    orders.push(...(await test1.approve(1, { packageId: id })));
    await closeBatch();
  }
  return orders;
}

/** Two packages sorted by id, of which the second was inserted first, so that a scan of the table returns it first. */
async function addOpposed(): Promise<[string, string]> {
  let [older, newer] = [await test1.addPackage(), await test1.addPackage()];
  while (newer > older) [older, newer] = [newer, await test1.addPackage()];
  return [newer, older];
}

await test("batches that become final together do not deadlock with other ends of orders of the same packages", async () => {
  const packages = await addOpposed();
  const sent = await sendInTwoBatches(packages);
  const others: TestOrder[] = [];
  for (const id of packages.toReversed())
    others.push(...(await test1.approve(1, { packageId: id })));
  const orders = others.map(({ id }) => ({ id, attempt: 1 }));
  const { ends } = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_package where id = ${packages[0]} for update`);
    const overdue = ctx.db.transaction(async (other) =>
      moveOrders(ctx, other, { orders, step: steps.overdue, at: ctx.clock.now() }),
    );
    await untilBlocked(ctx.db, tx, [overdue]);
    const mined = test1.mine("reverted");
    await untilBlocked(ctx.db, tx, [overdue, mined]);
    const free = sql`select from kyc_package where id = ${packages[1]} for update skip locked`;
    assert.equal((await ctx.db.query(free)).length, 1, "who waits for the first holds no other");
    return { ends: Promise.all([overdue, mined]) };
  });
  await ends;
  for (const order of [...sent, ...others])
    assert.equal(await statusOf(order), "FAILED INITIATE_TX_FAILED");
});

// Data that cannot be opened at its hand-over affects only its own order.
import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../../test/patience.ts";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { countPayloads, type TestOrder } from "../../../test/approved-orders-store.ts";
import { createDeferred } from "../platform/deferred.ts";
import { sql } from "../platform/database/db.ts";
import { createLog } from "../platform/telemetry/log.ts";
import { createSeal } from "../platform/cryptography/seal.ts";
import type { KycContext } from "./kyc-context.ts";
import { settleOrders } from "./settlement.ts";
import { lockHandOver, takeInitiated } from "./settlement-store.ts";

await using test1 = await openTestSettlement();
const { ctx } = test1;

const statusesOf = async (orders: readonly TestOrder[]) => Promise.all(orders.map(test1.statusOf));

/** Orders whose initiate is final. */
async function initiate(count: number): Promise<TestOrder[]> {
  const orders = await test1.approve(count);
  await test1.closeBatch();
  await test1.mine();
  return orders;
}

async function writePayload({ id }: TestOrder, sealed: Buffer): Promise<void> {
  await ctx.db.query(sql`update kyc_payload set sealed = ${sealed} where order_id = ${id}`);
}

async function readPayload({ id }: TestOrder): Promise<Buffer> {
  const [row] = await ctx.db.query<{ sealed: Buffer }>(
    sql`select sealed from kyc_payload where order_id = ${id}`,
  );
  return row?.sealed ?? Buffer.alloc(0);
}

/** The same, with the alarms that it raises. */
function listening(): { ctx: KycContext; alarms: () => unknown[] } {
  const lines: string[] = [];
  const log = createLog({ level: "error", destination: { write: (line) => lines.push(line) } });
  return {
    ctx: { ...ctx, log },
    alarms: () => lines.map((line) => (JSON.parse(line) as { alarm?: unknown }).alarm),
  };
}

await test("an order whose data was changed fails alone, with an alarm; the others are handed over", async () => {
  const [before, changed, after] = (await initiate(3)) as [TestOrder, TestOrder, TestOrder];
  const sealed = await readPayload(changed);
  sealed[sealed.length - 1] = (sealed.at(-1) ?? 0) ^ 1;
  await writePayload(changed, sealed);
  const heard = listening();
  await settleOrders(heard.ctx);
  assert.deepEqual(await statusesOf([before, changed, after]), [
    "CONFIRMING",
    "FAILED FIELD_REVOKED",
    "CONFIRMING",
  ]);
  assert.deepEqual(heard.alarms(), ["payload-broken"]);
  assert.equal(await countPayloads(ctx.db), 0);
  await test1.mine();
});

await test("data moved to another order is not handed over as that order's", async () => {
  const [one, other] = (await initiate(2)) as [TestOrder, TestOrder];
  const payload = await readPayload(other);
  const take = async (bytesMax: number) =>
    ctx.db.transaction(async (tx) => takeInitiated(tx, { limit: 10, bytesMax, except: [] }));
  const [few, all] = [await take(2 * payload.length - 1), await take(2 * payload.length)];
  assert.deepEqual([few.orders.length, few.hasMore, all.orders.length], [1, true, 2]);
  await writePayload(one, payload);
  await settleOrders(ctx);
  assert.deepEqual(await statusesOf([one, other]), ["FAILED FIELD_REVOKED", "CONFIRMING"]);
  await test1.mine();
});

await test("data under a master key that other processes have waits for one of them, and delays no other order", async () => {
  const [old, fresh] = (await initiate(2)) as [TestOrder, TestOrder];
  const [oldKey, newKey] = ["5a".repeat(32), "6b".repeat(32)];
  const both = createSeal([newKey, oldKey]);
  const place = { table: "kyc_payload", id: fresh.id, column: "sealed" };
  const plain = both.open(await readPayload(fresh), place);
  await writePayload(fresh, both.seal(plain, place));
  const heard = listening();
  const deferred = createDeferred(ctx.clock);
  for (let look = 0; look < 3; look += 1) await settleOrders(heard.ctx, deferred);
  assert.deepEqual(await statusesOf([old, fresh]), ["CONFIRMING", "INITIATED"]);
  assert.deepEqual(heard.alarms(), ["payload-key-missing"]);
  test1.world.advance(60);
  await settleOrders(heard.ctx, deferred);
  assert.deepEqual(heard.alarms(), ["payload-key-missing", "payload-key-missing"]);
  await settleOrders({ ...ctx, seal: both });
  assert.deepEqual(await statusesOf([fresh]), ["CONFIRMING"]);
  await test1.mine();
});

await test("data under a master key that no process has fails after 72 hours", async () => {
  const [order] = (await initiate(1)) as [TestOrder];
  const lost = createSeal(["7c".repeat(32)]);
  const place = { table: "kyc_payload", id: order.id, column: "sealed" };
  await writePayload(order, lost.seal(Buffer.from("W10="), place));
  test1.world.advance(72 * 3600 - 1);
  await settleOrders(ctx);
  assert.deepEqual(await statusesOf([order]), ["INITIATED"]);
  test1.world.advance(1);
  await settleOrders(ctx);
  assert.deepEqual(await statusesOf([order]), ["FAILED FIELD_REVOKED"]);
  assert.equal(await countPayloads(ctx.db), 0);
});

await test("a hand-over that waits for an invalidation of leaves has no orders locked", async () => {
  const [order] = (await initiate(1)) as [TestOrder];
  const { settling } = await ctx.db.transaction(async (tx) => {
    await lockHandOver(tx);
    const begun = settleOrders(ctx);
    await until("the hand-over waits", async () => {
      const rows = await ctx.db.query(sql`
        select from pg_locks join pg_database on pg_database.oid = pg_locks.database
        where datname = current_database() and locktype = 'advisory' and not granted`);
      return rows.length > 0 ? true : null;
    });
    await tx.query(sql`select from kyc_order where id = ${order.id} for update nowait`);
    return { settling: begun };
  });
  await settling;
  assert.deepEqual(await statusesOf([order]), ["CONFIRMING"]);
});

// What the statements of a deletion guarantee: a concurrent approval waits for it, and other users keep everything.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { sql } from "../platform/database/db.ts";
import { deleteOrders, lockOrdersOf } from "./user-deletion-store.ts";

await using settlement = await openTestSettlement();
const { ctx, user } = settlement;
const other = `0x${"ab".repeat(20)}` as const;

await test("a deletion locks and deletes the orders of its user, and of nobody else", async () => {
  const orders = await settlement.approve(3);
  const [first = "", second = "", others = ""] = orders.map(({ id }) => id).toSorted();
  await ctx.db.query(sql`update kyc_order set user_address = ${other} where id = ${others}`);
  await ctx.db.transaction(async (tx) => {
    const held = await lockOrdersOf(tx, user);
    assert.deepEqual(
      held.map(({ id }) => id),
      [first, second],
    );
    const free = await ctx.db.query<{ id: string }>(
      sql`select id from kyc_order for update skip locked`,
    );
    assert.deepEqual(
      free.map(({ id }) => id),
      [others],
    );
    await deleteOrders(tx, [first, second]);
  });
  const left = await ctx.db.query<{ id: string }>(sql`
    select id from kyc_order union all select distinct order_id from kyc_consent
    union all select distinct order_id from kyc_order_status`);
  assert.deepEqual(
    left.map(({ id }) => id),
    [others, others, others],
  );
});

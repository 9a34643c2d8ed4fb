import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import {
  buildTree,
  checkReceipt,
  parseReceipt,
  parseSignature,
  recoverAddress,
  type Hex32,
} from "@svc/protocol";
import { decodeFunctionData } from "viem";
import { settlement } from "@svc/contracts";
import { revokeCredential } from "../credentials/ending.ts";
import { getBuiltInIssuer } from "../credentials/index.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { listEventsOf } from "../webhooks/index.ts";
import { announceInvalidated } from "./handed-over.ts";
import { listHandedOver, listInvalidated } from "./handed-over-store.ts";
import { beginAttempt, findOrder, listHistory } from "./order-store.ts";
import { getReceiptOf } from "./receipts.ts";
import { callOf, treeOfBatch } from "./settlement-batch.ts";
import { batchMax, failOverdueOrders, settleOrders } from "./settlement.ts";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import {
  countPayloads,
  dropPayloads,
  listBatches,
  readTransfers,
  type TestOrder,
} from "../../../test/approved-orders-store.ts";

await using test1 = await openTestSettlement();
const { ctx, world, closeBatch, statusOf, packageId, user } = test1;
const windowSeconds = ctx.config.settlementWindowSeconds;

/** The merchant's events from the approval on, in order. */
async function eventsOf({ id }: TestOrder): Promise<{ kind: string; body: EventBody }[]> {
  const { events } = await listEventsOf(ctx, id, { after: 0, limit: 100 });
  return events.map(({ kind, body }) => ({ kind, body: JSON.parse(body ?? "{}") as EventBody }));
}

interface EventBody {
  sequence: number;
  data: Record<string, unknown>;
}

const kindsOf = async (order: TestOrder): Promise<string[]> =>
  (await eventsOf(order)).map(({ kind, body }) => {
    const { status } = body.data;
    return typeof status === "string" ? status : kind;
  });

/** Settles everything to the end. */
async function settleAll(): Promise<void> {
  await closeBatch();
  await test1.mine();
  await settleOrders(ctx);
  await test1.mine();
}

const byText = (a: string, b: string): number => (a < b ? -1 : 1);
const only = <T>(items: readonly T[]): T => {
  assert.equal(items.length, 1);
  return items[0] as T;
};

await test("an approved order is settled on chain, and its merchant gets an event for every step", async () => {
  const before = await readTransfers(ctx.db, packageId);
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  assert.equal(await statusOf(order), "INITIATING");
  const initiate = only(await test1.mine());
  assert.equal(initiate.kind, "kyc.initiate");
  assert.equal(await statusOf(order), "INITIATED");
  await settleOrders(ctx);
  assert.equal(await statusOf(order), "CONFIRMING");
  const confirm = only(await test1.mine());
  assert.equal(confirm.kind, "kyc.confirm");
  assert.equal(await statusOf(order), "CONFIRMED");
  assert.deepEqual(await kindsOf(order), [
    "INITIATED",
    "CONFIRMING",
    "data.transferred",
    "CONFIRMED",
  ]);
  const events = await eventsOf(order);
  assert.deepEqual(
    events.map(({ body }) => body.sequence),
    [3, 4, 5, 6],
  );
  assert.equal(events[0]?.body.data["initiatedTxHash"], initiate.hash);
  assert.equal(events[3]?.body.data["confirmTxHash"], confirm.hash);
  assert.equal(typeof events[2]?.body.data["infos"], "string");
  const history = await listHistory(ctx.db, order.id, 10);
  assert.deepEqual(
    history.map(({ status }) => status),
    ["PENDING", "INITIATING", "INITIATED", "CONFIRMING", "CONFIRMED"],
  );
  const [entries] = await ctx.db.query(sql`
    select array_agg(sequence order by sequence) as sequences from kyc_order_status where order_id = ${order.id}`);
  assert.deepEqual(entries, { sequences: [1, 2, 3, 4, 6] }, "those of their events");
  const after = await readTransfers(ctx.db, packageId);
  assert.deepEqual(after, { held: before.held, consumed: before.consumed + 1 });
  assert.equal(await countPayloads(ctx.db), 0);
});

await test("a batch closes after the settlement window and not before", async () => {
  const [first] = (await test1.approve(1)) as [TestOrder];
  await settleOrders(ctx);
  world.advance(windowSeconds - 1);
  await settleOrders(ctx);
  assert.deepEqual(await test1.mine(), []);
  const [second] = (await test1.approve(1)) as [TestOrder];
  world.advance(1);
  await settleOrders(ctx);
  only(await test1.mine());
  assert.deepEqual(await Promise.all([first, second].map(statusOf)), ["INITIATED", "INITIATED"]);
  await settleAll();
});

await test("a batch closes at a thousand orders at once, in a handful of calls a step", async () => {
  assert.equal(batchMax, 1000);
  const orders = await test1.approve(batchMax + 1, { isUnsigned: true });
  const counted = async (step: () => Promise<unknown>): Promise<number> => {
    const before = ctx.db.callsTotal;
    await step();
    return ctx.db.callsTotal - before;
  };
  const older = new Set((await listBatches(ctx.db)).map(({ id }) => id));
  const calls = {
    close: await counted(async () => settleOrders(ctx)),
    initiated: await counted(async () => test1.mine()),
    handOver: await counted(async () => settleOrders(ctx)),
    confirmed: await counted(async () => test1.mine()),
  };
  const made = (await listBatches(ctx.db)).filter(({ id }) => !older.has(id));
  assert.deepEqual(
    made.map(({ phase, leavesCount }) => `${leavesCount} ${phase}`).toSorted(byText),
    [`${batchMax + 1} confirm`, `${batchMax + 1} initiate`, "2 confirm", "2 initiate"],
  );
  for (const [step, count] of Object.entries(calls)) assert.ok(count <= 22, `${step}: ${count}`);
  assert.equal(await statusOf(orders[0] as TestOrder), "CONFIRMED");
  assert.equal(await statusOf(orders[batchMax] as TestOrder), "CONFIRMED");
});

await test("two processes put every order into one batch, and hand it over once", async () => {
  const orders = await test1.approve(30);
  world.advance(windowSeconds);
  const batches = (await listBatches(ctx.db)).length;
  await Promise.all([settleOrders(ctx), settleOrders(ctx), settleOrders(ctx)]);
  assert.equal((await listBatches(ctx.db)).length, batches + 1);
  await test1.mine();
  await Promise.all([settleOrders(ctx), settleOrders(ctx), settleOrders(ctx)]);
  await test1.mine();
  for (const order of orders) {
    assert.deepEqual(await kindsOf(order), [
      "INITIATED",
      "CONFIRMING",
      "data.transferred",
      "CONFIRMED",
    ]);
  }
});

await test("the calldata of a batch is its root, over every order and the head of the audit chain", async () => {
  const audit = { hash: Buffer.alloc(32, 7), position: 12 };
  const [order] = (await test1.approve(1)) as [TestOrder];
  const anchor = {
    id: order.id,
    referenceKey: order.referenceKey,
    attempt: 1,
    salt: order.salt,
    consent: order.consent.consent,
    data: order.consent.data,
  };
  for (const phase of ["initiate", "confirm"] as const) {
    const { root, leaves } = treeOfBatch(phase, [anchor], audit);
    assert.equal(buildTree(leaves).root, root);
    assert.equal(leaves.length, 2);
    const call = decodeFunctionData({ abi: settlement.abi, data: callOf(phase, root) });
    assert.deepEqual(call, { functionName: phase, args: [root] });
  }
  await settleAll();
});

await test("nothing on chain names a user, a field, a value or an order", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  const { data } = only(
    await ctx.db.query<{ data: Buffer }>(
      sql`select data from chain_transaction where status = 'queued'`,
    ),
  );
  assert.equal(data.length, 4 + 32);
  for (const secret of [user.slice(2), order.referenceKey, order.salt.slice(2)]) {
    assert.ok(!data.toString("hex").includes(secret));
  }
  await test1.mine();
});

await test("an order whose leaf was revoked before the hand-over fails, and nothing is handed over", async () => {
  await using other = await openTestSettlement();
  const before = await readTransfers(other.ctx.db, other.packageId);
  const [order] = (await other.approve(1)) as [TestOrder];
  await other.closeBatch();
  await other.mine();
  const issuer = await getBuiltInIssuer(other.ctx, "demo", "live");
  await revokeCredential(other.ctx, issuer, other.credentialId);
  await settleOrders(other.ctx);
  const found = await findOrder(other.ctx.db, order.referenceKey);
  assert.equal(found?.failureReason, "FIELD_REVOKED");
  const { events } = await listEventsOf(other.ctx, order.id, { after: 0, limit: 100 });
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["status.updated", "status.updated"],
  );
  assert.deepEqual(await readTransfers(other.ctx.db, other.packageId), before);
  assert.equal(await countPayloads(other.ctx.db), 0);
});

await test("an order whose values are gone is not handed over", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  await test1.mine();
  await dropPayloads(ctx.db, [order.id]);
  await settleOrders(ctx);
  assert.equal(await statusOf(order), "FAILED FIELD_REVOKED");
});

await test("a reverted initiate fails the batch and gives its transfers and data back", async () => {
  const before = await readTransfers(ctx.db, packageId);
  const orders = await test1.approve(3);
  await closeBatch();
  await test1.mine("reverted");
  for (const order of orders) {
    assert.equal(await statusOf(order), "FAILED INITIATE_TX_FAILED");
    assert.deepEqual(await kindsOf(order), ["FAILED"]);
  }
  assert.equal((await listBatches(ctx.db)).at(-1)?.isFinal, false, "the chain does not hold it");
  assert.deepEqual(await readTransfers(ctx.db, packageId), before);
  assert.equal(await countPayloads(ctx.db), 0);
});

await test("a reverted confirm fails the batch, after its data was handed over", async () => {
  const before = await readTransfers(ctx.db, packageId);
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  await test1.mine();
  await settleOrders(ctx);
  await test1.mine("reverted");
  assert.equal(await statusOf(order), "FAILED CONFIRM_TX_FAILED");
  assert.deepEqual(await readTransfers(ctx.db, packageId), before);
});

await test("an order that is not initiated 72 hours after its approval fails, whatever comes later", async () => {
  const before = await readTransfers(ctx.db, packageId);
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  const [unbatched] = (await test1.approve(1)) as [TestOrder];
  world.advance(72 * 3600 - windowSeconds - 1);
  await failOverdueOrders(ctx);
  assert.equal(await statusOf(order), "INITIATING");
  world.advance(1);
  await failOverdueOrders(ctx);
  assert.equal(await statusOf(order), "FAILED INITIATE_TX_FAILED");
  await test1.mine();
  assert.equal(await statusOf(order), "FAILED INITIATE_TX_FAILED");
  assert.deepEqual(await kindsOf(order), ["FAILED"]);
  world.advance(windowSeconds);
  await failOverdueOrders(ctx);
  assert.equal(await statusOf(unbatched), "FAILED INITIATE_TX_FAILED");
  assert.deepEqual(await readTransfers(ctx.db, packageId), before);
  const older = new Set((await listBatches(ctx.db)).map(({ id }) => id));
  await test1.approve(1);
  await settleAll();
  const made = (await listBatches(ctx.db)).filter(({ id }) => !older.has(id));
  assert.deepEqual(
    made.map(({ leavesCount }) => leavesCount),
    [2, 2],
    "one that has failed is anchored with no other",
  );
});

await test("a batch's final transaction may be reported twice", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  await closeBatch();
  const done = await test1.mine();
  await settleOrders(ctx);
  const { settlementFinalHandlers } = await import("./settlement.ts");
  const handler = settlementFinalHandlers(ctx)["kyc.initiate"];
  await ctx.db.transaction(async (tx) => handler?.(tx, done));
  await test1.mine();
  assert.deepEqual(await kindsOf(order), [
    "INITIATED",
    "CONFIRMING",
    "data.transferred",
    "CONFIRMED",
  ]);
});

await test("a receipt verifies by itself, in both phases, and names its user's signature", async () => {
  const orders = await test1.approve(5);
  const [order] = orders as [TestOrder];
  await closeBatch();
  const asked = { referenceKey: order.referenceKey, attempt: null };
  await assert.rejects(getReceiptOf(ctx, user, asked), { reason: "receipt_not_found" });
  const initiate = only(await test1.mine());
  assert.equal((await getReceiptOf(ctx, user, asked)).confirm, undefined);
  await settleOrders(ctx);
  const confirm = only(await test1.mine());
  const receipt = await getReceiptOf(ctx, user, asked);
  const read = parseReceipt(JSON.parse(JSON.stringify(receipt)));
  assert.deepEqual(read, receipt);
  const checked = checkReceipt(receipt);
  assert.ok("consent" in checked, JSON.stringify(checked));
  const signature = parseSignature(receipt.signature);
  assert.ok(signature !== null);
  assert.equal(recoverAddress(checked.consent, signature), user);
  assert.equal(receipt.initiate.transactionHash, initiate.hash);
  assert.equal(receipt.confirm?.transactionHash, confirm.hash);
  assert.equal(receipt.initiate.blockTime, initiate.blockTime);
  assert.equal(receipt.livemode, true);
  assert.doesNotMatch(JSON.stringify(receipt), /user@example\.com/);
});

await test("a receipt is not for another identity", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  await settleAll();
  const stranger = `0x${"99".repeat(20)}` as const;
  const asked = { referenceKey: order.referenceKey, attempt: null };
  await assert.rejects(getReceiptOf(ctx, stranger, asked), { reason: "order_not_found" });
  const other = { ...asked, attempt: 2 };
  await assert.rejects(getReceiptOf(ctx, user, other), { reason: "receipt_not_found" });
});

await test("the receipt of an attempt outlives it, and the next attempt is settled for itself", async () => {
  const [order] = (await test1.approve(1)) as [TestOrder];
  await settleAll();
  const asked = { referenceKey: order.referenceKey, attempt: null };
  const first = await getReceiptOf(ctx, user, asked);
  await ctx.db.query(sql`
    update kyc_order set scanned_at = 1, mismatches = 3 where id = ${order.id}`);
  const before = await findOrder(ctx.db, order.referenceKey);
  assert.ok(before !== null);
  const salt = `0x${"5a".repeat(32)}` as const;
  const statusAt = ctx.clock.now();
  const next = await ctx.db.transaction(async (tx) =>
    beginAttempt(tx, { ...before, salt }, statusAt),
  );
  const renewed = { attempt: 2, status: "PENDING", statusAt, sequence: before.sequence + 1, salt };
  const none = { scannedAt: null, mismatches: 0, initiatedTxHash: null, confirmTxHash: null };
  assert.deepEqual(next, { ...before, ...renewed, ...none });
  assert.deepEqual(await getReceiptOf(ctx, user, asked), first);
  assert.deepEqual(await getReceiptOf(ctx, user, { ...asked, attempt: 1 }), first);
  await settleAll();
  assert.equal(await statusOf(order), "PENDING");
});

/** A separate world, because its credential is revoked in the end. */
await using other = await openTestSettlement();

await test("exactly the leaves that were handed over to an organization count as handed over", async () => {
  const { organizationId } = other;
  const asked = { user: other.user, fields: ["EMAIL" as const] };
  const [order] = (await other.approve(2)) as [TestOrder];
  assert.deepEqual(await listHandedOver(other.ctx.db, organizationId, asked), []);
  await other.closeBatch();
  await other.mine();
  assert.deepEqual(await listHandedOver(other.ctx.db, organizationId, asked), []);
  await settleOrders(other.ctx);
  const held = await listHandedOver(other.ctx.db, organizationId, asked);
  assert.deepEqual(held, order.consent.leaves);
  const sandbox = other.world.sandbox.organizationId;
  assert.deepEqual(await listHandedOver(other.ctx.db, sandbox, asked), []);
  const phone = { ...asked, fields: ["PHONE" as const] };
  assert.deepEqual(await listHandedOver(other.ctx.db, organizationId, phone), []);
  const stranger = { ...asked, user };
  assert.deepEqual(await listHandedOver(other.ctx.db, organizationId, stranger), []);
});

await test("a revoked field is announced to the merchants who were given it, once for each order", async () => {
  const delivered = await other.approve(2);
  await other.closeBatch();
  await other.mine();
  await settleOrders(other.ctx);
  await other.mine();
  const [pending] = (await other.approve(1)) as [TestOrder];
  const leaf = delivered[0]?.consent.leaves[0] as Hex32;
  const invalid = [{ leaf, user: other.user, field: "EMAIL" as const }];
  await other.ctx.db.transaction(async (tx) => announceInvalidated(other.ctx, tx, invalid));
  for (const { id, referenceKey } of delivered) {
    const {
      events: [event],
    } = await listEventsOf(other.ctx, id, { after: 6, limit: 10 });
    assert.equal(event?.kind, "data.invalidated");
    const { sequence, data } = JSON.parse(event?.body ?? "{}") as EventBody;
    assert.equal(sequence, 7);
    assert.deepEqual(data, { referenceKey, attempt: 1, user: other.user, fields: ["EMAIL"] });
  }
  assert.deepEqual(await listEventsOf(other.ctx, pending.id, { after: 0, limit: 10 }), {
    events: [],
  });
});

await test("only the last delivered value of a field is announced, also of one that later attempts left out", async () => {
  const { db } = other.ctx;
  const [order] = (await other.approve(1)) as [TestOrder];
  const [first, second, third, phone] = ["a1", "a2", "a3", "b2"].map(
    (byte): Hex32 => `0x${byte.repeat(32)}`,
  ) as [Hex32, Hex32, Hex32, Hex32];
  const deliver = async (attempt: number, given: Record<string, Hex32>): Promise<void> => {
    const leaves = Object.values(given).map((leaf) => Buffer.from(leaf.slice(2), "hex"));
    await db.query(sql`
      insert into kyc_consent select (jsonb_populate_record(c, jsonb_build_object('attempt', ${attempt}::integer,
        'fields', ${Object.keys(given)}::text[], 'leaves', ${leaves}::bytea[], 'delivered_at', 1))).*
      from kyc_consent as c where order_id = ${order.id} and attempt = 1`);
  };
  await deliver(11, { EMAIL: first });
  await deliver(12, { EMAIL: second, PHONE: phone });
  await deliver(13, { EMAIL: third });
  const ended = async (...leaves: Hex32[]): Promise<unknown> =>
    (await listInvalidated(db, leaves)).map(({ attempt, fields }) => [attempt, fields]);
  assert.deepEqual(await ended(first), [[11, ["EMAIL"]]]);
  assert.deepEqual(await ended(first, phone), [[12, ["PHONE"]]]);
  assert.deepEqual(await ended(first, phone, third), [[13, ["EMAIL", "PHONE"]]]);
  await db.query(sql`
    update kyc_consent set delivered_at = null where order_id = ${order.id} and attempt in (12, 13)`);
  await deliver(14, { PHONE: phone });
  assert.deepEqual(await ended(first, phone), [[14, ["EMAIL", "PHONE"]]], "as it was delivered");
});

await test("a field that is revoked while it is handed over is announced after it", async () => {
  const { db } = other.ctx;
  const [order] = (await other.approve(1)) as [TestOrder];
  await other.closeBatch();
  await other.mine();
  // The hand-over has checked the leaves and has not committed yet.
  const reached = Promise.withResolvers<void>();
  const opened = Promise.withResolvers<void>();
  const transaction: typeof db.transaction = async (work) =>
    db.transaction(async (tx) => {
      const result = await work(tx);
      reached.resolve();
      await opened.promise;
      return result;
    });
  const slow = { ...other.ctx, db: { ...db, transaction } };
  const handedOver = settleOrders(slow);
  await reached.promise;
  const issuer = await getBuiltInIssuer(other.ctx, "demo", "live");
  const onInvalidated: typeof ctx.onInvalidated = async (tx, leaves) =>
    announceInvalidated(other.ctx, tx, leaves);
  const revoked = revokeCredential({ ...other.ctx, onInvalidated }, issuer, other.credentialId);
  await Promise.race([revoked, somebodyWaits(db)]);
  opened.resolve();
  await Promise.all([handedOver, revoked]);
  const { events } = await listEventsOf(other.ctx, order.id, { after: 0, limit: 10 });
  assert.deepEqual(
    events.map(({ kind }) => kind),
    ["status.updated", "status.updated", "data.transferred", "data.invalidated"],
  );
});

async function somebodyWaits(db: Queryable): Promise<void> {
  for (let tries = 0; tries < 10_000; tries += 1) {
    const rows = await db.query(
      sql`select 1 from pg_locks where locktype = 'advisory' and not granted
        and database = (select oid from pg_database where datname = current_database())`,
    );
    if (rows.length > 0) return;
    await setImmediate();
  }
}

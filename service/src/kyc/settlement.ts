// The settlement of approved orders on chain (decisions section 5). A batch of orders is anchored (initiate); once that
// is final, their data is handed over and they are anchored again (confirm). Each step handles many orders at once.
import { enqueueTransaction, type FinalHandlers, type FinalTransaction } from "../chain/index.ts";
import { findLiveLeaves } from "../credentials/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import { workInTransactions } from "../platform/database/work-in-batches.ts";
import { createDeferred, type Deferred } from "../platform/deferred.ts";
import { uuidv7 } from "../platform/ids.ts";
import { mayOpenElsewhere, placeIn, SealBroken } from "../platform/cryptography/seal.ts";
import { payloadColumn } from "./consent.ts";
import { dataTransferred } from "./events.ts";
import type { KycContext } from "./kyc-context.ts";
import { initiateWithinSeconds, steps, type Trigger } from "./order.ts";
import { type Anchor, callOf, type Phase, treeOfBatch } from "./settlement-batch.ts";
import * as store from "./settlement-store.ts";
import type { Move } from "./transition-store.ts";
import { moveOrders } from "./transitions.ts";

/** A batch closes at this many orders, or after the settlement window. */
export const batchMax = 1000;
/** Bytes of data that one hand-over has in memory; images make it large. */
const bytesMax = 16 * 1024 * 1024;

/**
 * Hands over initiated orders, and closes batches of approved ones. Any number of processes may do so at once. Without
 * work it costs one database call. Batches are also closed between hand-overs, which may take minutes if values are
 * large.
 *
 * @param deferred orders whose data this process cannot open for now
 */
export async function settleOrders(
  ctx: KycContext,
  deferred: Deferred = createDeferred(ctx.clock),
): Promise<void> {
  let sealedElsewhere = 0;
  for (let hasMore = true; hasMore;) {
    const backlog = await store.readBacklog(ctx.db, batchMax);
    hasMore = false;
    if (backlog.hasInitiated) {
      const handed = await ctx.db.transaction(async (tx) => handOver(ctx, tx, deferred.ids()));
      for (const id of handed.waiting) deferred.add(id);
      sealedElsewhere += handed.waiting.length;
      hasMore = handed.hasMore;
    }
    if (isBatchDue(backlog, ctx.clock.now() - ctx.config.settlementWindowSeconds))
      await closeBatches(ctx);
  }
  if (sealedElsewhere === 0) return;
  const line = { alarm: "payload-key-missing", orders: sealedElsewhere };
  ctx.log.error(
    line,
    "orders wait: their data is sealed with a master key that is not in MASTER_KEY",
  );
}

function isBatchDue({ unbatched, oldestApprovedAt }: store.Backlog, windowStart: number): boolean {
  return unbatched >= batchMax || (oldestApprovedAt !== null && oldestApprovedAt <= windowStart);
}

/** Puts all waiting orders into batches, though only the first is due: that costs less than letting them wait. */
async function closeBatches(ctx: KycContext): Promise<void> {
  await workInTransactions(ctx.db, batchMax, async (tx, limit) => {
    if (!(await store.tryLockBatches(tx))) return 0;
    const anchors = await store.takeUnbatched(tx, limit);
    await anchor(ctx, tx, { phase: "initiate", anchors });
    return anchors.length;
  });
}

/** Puts orders into a batch of a phase and queues its transaction on chain, in the caller's database transaction. */
async function anchor(
  ctx: KycContext,
  tx: Queryable,
  { phase, anchors }: { phase: Phase; anchors: readonly Anchor[] },
): Promise<void> {
  if (anchors.length === 0) return;
  const audit = await ctx.audit.head(tx);
  const { root, leaves } = treeOfBatch(phase, anchors, audit);
  const id = uuidv7(ctx.clock, ctx.random);
  const orderIds = anchors.map((each) => each.id);
  await store.insertBatch(tx, { id, phase, root, leaves, audit, orderIds, at: ctx.clock.now() });
  const to = ctx.chain.contracts.settlement;
  const data = callOf(phase, root);
  await enqueueTransaction(ctx, tx, { kind: `kyc.${phase}`, subjectId: id, to, data });
}

/** What follows once the transactions of batches are final. */
export function settlementFinalHandlers(ctx: KycContext): FinalHandlers {
  return {
    "kyc.initiate": async (tx, done) => {
      await finishBatches(ctx, tx, { phase: "initiate", done });
      // Their data can be handed over now.
      await store.wakeSettlement(tx);
    },
    "kyc.confirm": async (tx, done) => finishBatches(ctx, tx, { phase: "confirm", done }),
  };
}

async function finishBatches(
  ctx: KycContext,
  tx: Queryable,
  { phase, done }: { phase: Phase; done: readonly FinalTransaction[] },
): Promise<void> {
  await store.noteFinal(tx, done.filter(isSucceeded).map(toFinalBatch));
  const batchIds = done.map(({ subjectId }) => subjectId);
  const waiting = await store.listWaiting(tx, phase, batchIds);
  for (const { subjectId, hash, status } of done) {
    const orders = waiting.get(subjectId) ?? [];
    if (status === "reverted") {
      await failOrders(ctx, tx, { orders, trigger: `${phase}-reverted` });
    } else {
      const step = steps[`${phase}-final`];
      const anchored = phase === "initiate" ? { initiatedTxHash: hash } : { confirmTxHash: hash };
      await moveOrders(ctx, tx, { orders, step, at: ctx.clock.now(), ...anchored });
    }
  }
}

const isSucceeded = ({ status }: FinalTransaction): boolean => status === "succeeded";
const toFinalBatch = (given: FinalTransaction): store.FinalBatch => ({
  id: given.subjectId,
  hash: given.hash,
  operator: given.signer,
  blockNumber: given.blockNumber,
  blockTime: given.blockTime,
});

/**
 * Hands over the data of initiated orders whose leaves are all still live, and puts these orders into a confirm batch.
 * Orders with a leaf that is no longer live fail, and so do those whose data can no longer be read.
 *
 * @param except ids of orders to skip
 * @returns whether there may be more, and the ids of orders that only another process may be able to hand over
 */
async function handOver(
  ctx: KycContext,
  tx: Queryable,
  except: readonly string[],
): Promise<{ hasMore: boolean; waiting: string[] }> {
  // From here on, whoever invalidates a leaf waits, then finds these orders handed over and announces the end to their
  // merchants too. Both sides take this lock before they lock orders, so they cannot deadlock.
  await store.lockHandOverShared(tx);
  const taken = await store.takeInitiated(tx, { limit: batchMax, bytesMax, except });
  const { orders, hasMore } = taken;
  if (orders.length === 0) return { hasMore: false, waiting: [] };
  const live = await findLiveLeaves(ctx, tx, [...new Set(orders.flatMap(({ leaves }) => leaves))]);
  const isLive = (order: store.InitiatedOrder): boolean =>
    order.leaves.every((leaf) => live.has(leaf));
  const { good, broken, waiting } = openAll(ctx, orders.filter(isLive));
  const dead = [...orders.filter((order) => !isLive(order)), ...broken];
  await failOrders(ctx, tx, { orders: dead, trigger: "leaves-dead" });
  await sendData(ctx, tx, good);
  await anchor(ctx, tx, { phase: "confirm", anchors: good });
  return { hasMore, waiting: waiting.map(({ id }) => id) };
}

/** An order with what its user released. */
type OpenedOrder = store.InitiatedOrder & { readonly infos: string };

interface OpenedOrders {
  readonly good: readonly OpenedOrder[];
  /** Their data is gone or was changed. */
  readonly broken: readonly store.InitiatedOrder[];
  /** Their data is sealed with a master key that only other processes have, as may happen during a change of keys. */
  readonly waiting: readonly store.InitiatedOrder[];
}

/** Opens the data of each order on its own, so that one that does not open delays no other. */
function openAll(ctx: KycContext, orders: readonly store.InitiatedOrder[]): OpenedOrders {
  const good: OpenedOrder[] = [];
  const broken: store.InitiatedOrder[] = [];
  const waiting: store.InitiatedOrder[] = [];
  for (const order of orders) {
    const opened = open(ctx, order);
    if (typeof opened === "object") good.push(Object.assign(order, opened));
    else if (opened === "broken") broken.push(order);
    else waiting.push(order);
  }
  if (broken.length > 0) {
    const line = { alarm: "payload-broken", orders: broken.map(({ id }) => id) };
    ctx.log.error(line, "data cannot be handed over: it is gone or was changed");
  }
  return { good, broken, waiting };
}

function open(
  ctx: Pick<KycContext, "seal" | "clock">,
  { id, sealed, initiatedAt }: store.InitiatedOrder,
): { infos: string } | "broken" | "waiting" {
  if (sealed === null) return "broken";
  try {
    return { infos: ctx.seal.open(sealed, placeIn(payloadColumn, id)).toString() };
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    return mayOpenElsewhere(error, ctx.clock.now() - initiatedAt) ? "waiting" : "broken";
  }
}

/** Moves the orders on and queues the webhooks with their data. */
async function sendData(
  ctx: KycContext,
  tx: Queryable,
  given: readonly OpenedOrder[],
): Promise<void> {
  if (given.length === 0) return;
  const at = ctx.clock.now();
  const infos = new Map(given.map((each) => [each.id, each.infos]));
  await moveOrders(ctx, tx, {
    orders: given,
    step: steps["leaves-live"],
    at,
    follow: (order) => dataTransferred(ctx, order, infos.get(order.id) ?? ""),
  });
  await store.noteHandedOver(tx, given, at);
}

/** Fails orders: their transfers are released and their data is deleted. */
async function failOrders(
  ctx: KycContext,
  tx: Queryable,
  { orders, trigger }: { orders: Move["orders"]; trigger: Trigger },
): Promise<void> {
  const step = steps[trigger];
  const failed = await moveOrders(ctx, tx, { orders, step, at: ctx.clock.now() });
  if (failed.length === 0 || trigger === "leaves-dead") return;
  ctx.log.error({ alarm: trigger, orders: failed.length }, "orders could not be settled");
}

/** Fails the orders that were not initiated on chain within 72 hours of their approval. */
export async function failOverdueOrders(ctx: KycContext): Promise<void> {
  const before = ctx.clock.now() - initiateWithinSeconds;
  await workInTransactions(ctx.db, batchMax, async (tx, limit) => {
    const orders = await store.takeOverdue(tx, { before, limit });
    await failOrders(ctx, tx, { orders, trigger: "overdue" });
    return orders.length;
  });
}

import { setTimeout as delay } from "node:timers/promises";
import type { Address, Hex32 } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import type { ChainContext } from "./context.ts";
import { isInFinalBlock, readFees, readView } from "./chain-view.ts";
import { refuseOtherChain } from "./checked-node.ts";
import { throwGravest } from "./node.ts";
import { bump, broadcast, type Reception, signDue } from "./sign.ts";
import * as store from "./transaction-store.ts";
import { judge, ownKinds, type Patience, patienceOf, type Verdict } from "./transaction.ts";

/** A transaction with its final outcome. */
export interface FinalTransaction {
  readonly id: string;
  readonly kind: string;
  readonly subjectId: string;
  readonly hash: Hex32;
  /** The account that sent it. */
  readonly signer: Address;
  readonly status: "succeeded" | "reverted";
  readonly blockNumber: number;
  /** The block's timestamp, Unix seconds. */
  readonly blockTime: number;
}

/**
 * Handlers of final transactions, by kind. A handler is called in the database transaction that marks them final, with
 * all of its kind that became final together. If it throws, none is marked, and it is called again later.
 */
export type FinalHandlers = Readonly<
  Record<string, (tx: Queryable, done: readonly FinalTransaction[]) => Promise<void>>
>;

/**
 * At most one process observes sent transactions in this interval. `quick` is for chains whose transactions are final
 * after one block, which are local ones: each of their blocks wakes every process.
 */
const observeMs = { quick: 25, deep: 3_000 };
/** More than are ever in flight. */
const sentMax = 200;
/** How many fees one run raises. A few are enough: all others wait for the lowest nonces. */
const bumpsMax = 4;
/** The most rounds of one run, so that other jobs get their turn. */
const roundsMax = 20;

/**
 * Signs and sends queued transactions, and observes those sent. Any number of processes may do so at once. Without work
 * it costs one database call.
 *
 * @param options.only handles this kind only; for the start, when the handlers of other kinds are not there yet
 */
export async function workOutbox(
  ctx: ChainContext,
  handlers: FinalHandlers,
  options: { only?: string } = {},
): Promise<void> {
  const { chain, db, clock } = ctx;
  for (let round = 0; round < roundsMax; round += 1) {
    const { hasDue, hasSent } = await store.readBacklog(db, clock.now());
    let signed = { count: 0, hasMore: false };
    let finished = 0;
    const sign = async (): Promise<void> => {
      if (hasDue) signed = await signDue(ctx, options);
    };
    const lookAfter = async (): Promise<void> => {
      if (!hasSent && signed.count === 0) return;
      // A local chain mines at once, so what was just signed can be observed already.
      const isMined = chain.confirmations === 1 && signed.count > 0;
      if (isMined || (await claimSoon(ctx))) finished = await observe(ctx, handlers, options);
    };
    await doEach([sign, lookAfter]);
    // Transactions that became final have left room for queued ones, and nothing else wakes the outbox for that.
    const hasRoom = hasDue && finished > 0;
    if (!signed.hasMore && !hasRoom) return;
  }
}

/** Runs the steps one after the other, even if earlier ones fail. @throws as {@link throwGravest} */
async function doEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => faults.push(error));
  throwGravest(faults, "several things failed in the outbox");
}

/**
 * Claims the observation. If another process has made one in this interval, a block that came just after it would go
 * unnoticed on a quick chain, so this tries once more at the end of the interval; if that fails too, somebody else has
 * looked since.
 */
async function claimSoon(ctx: ChainContext): Promise<boolean> {
  if (await claimObservation(ctx)) return true;
  if (ctx.chain.confirmations !== 1) return false;
  await delay(observeMs.quick);
  return claimObservation(ctx);
}

async function claimObservation({ chain, db, clock }: ChainContext): Promise<boolean> {
  const intervalMs = chain.confirmations === 1 ? observeMs.quick : observeMs.deep;
  return store.claimObservation(db, chain.operator, { nowMs: clock.nowMs(), intervalMs });
}

type Sent = Awaited<ReturnType<typeof store.listSent>>[number];
type Judged = { readonly sent: Sent; readonly verdict: Verdict };

/** @returns how many were found final */
async function observe(
  ctx: ChainContext,
  handlers: FinalHandlers,
  { only }: { only?: string },
): Promise<number> {
  let finished = 0;
  const all = await store.listSent(ctx.db, { limit: sentMax, only: only ?? null });
  const signers = Map.groupBy(all, (each) => each.signer);
  const looks = [...signers].map(([signer, sent]) => async () => {
    const { view, judged } = await judgeAll(ctx, signer, sent);
    const below = sent[0]?.nonce ?? 0;
    await doEach([
      async () => {
        await finishFinal(ctx, judged, handlers);
        finished += judged.filter(({ verdict }) => verdict.is === "final").length;
      },
      async () => noteChanges(ctx, judged),
      async () => resendLate(ctx, judged),
      // With `only`, transactions of other kinds may have the nonces in between.
      async () =>
        only === undefined ? closeGap(ctx, signer, { from: view.nonces, below }) : undefined,
    ]);
  });
  await doEach(looks);
  return finished;
}

async function judgeAll(
  ctx: ChainContext,
  signer: Address,
  sent: readonly Sent[],
): Promise<{ view: { nonces: number }; judged: Judged[] }> {
  const { chain, clock } = ctx;
  const hashes = sent.flatMap((each) => each.hashes);
  // On another chain the account has none of our transactions, and all of them would look lost.
  const [view] = await Promise.all([readView(chain, signer, hashes), refuseOtherChain(ctx)]);
  const rules = { now: clock.now(), patience: patienceWith(signer, chain) };
  return { view, judged: sent.map((each) => ({ sent: each, verdict: judge(each, view, rules) })) };
}

function patienceWith(signer: Address, chain: ChainContext["chain"]): Patience {
  const { embedded, remote } = patienceOf;
  if (chain.isEmbedded) return embedded;
  // No bumps for the account of a former operator: this process cannot sign for it.
  return signer === chain.operator ? remote : { ...remote, bumpSeconds: null };
}

/** Marks what is final, kind by kind, so that a failing handler delays no other kind. */
async function finishFinal(
  ctx: ChainContext,
  judged: readonly Judged[],
  handlers: FinalHandlers,
): Promise<void> {
  const done = judged.flatMap(({ sent, verdict }) =>
    verdict.is === "final" ? [{ sent, verdict }] : [],
  );
  const kinds = Map.groupBy(done, ({ sent }) => sent.kind);
  await doEach(
    [...kinds].map(([kind, given]) => async () => {
      const marks = given.map(({ sent, verdict }) => markOf(sent, verdict));
      await finishKind(ctx, marks, handlers[kind]);
    }),
  );
}

type Mark = store.FinalMark & FinalTransaction;

function markOf(
  { id, kind, subjectId, signer }: Sent,
  { receipt, blockTime }: Extract<Verdict, { is: "final" }>,
): Mark {
  const { hash, blockHash, blockNumber, succeeded } = receipt;
  const status = succeeded ? "succeeded" : "reverted";
  return { id, kind, subjectId, hash, signer, blockHash, blockNumber, blockTime, status };
}

async function finishKind(
  ctx: ChainContext,
  marks: readonly Mark[],
  handler: FinalHandlers[string] | undefined,
): Promise<void> {
  const now = ctx.clock.now();
  const fresh = await ctx.db.transaction(async (tx) => {
    const ids = await store.markFinal(tx, marks, now);
    const done = marks.filter((mark) => ids.has(mark.id));
    if (done.length > 0) await handler?.(tx, done);
    return done;
  });
  for (const each of fresh) {
    ctx.chain.metrics.count(each.status);
    if (each.status === "reverted")
      ctx.chain.metrics.raise("reverted", { kind: each.kind, hash: each.hash });
  }
}

/** Stores the verdicts that changed, except final ones. */
async function noteChanges(ctx: ChainContext, judged: readonly Judged[]): Promise<void> {
  const { db, chain } = ctx;
  for (const { sent, verdict } of judged) {
    const { id, minedBlockHash, foreignSince } = sent;
    if (verdict.is === "mined" && verdict.receipt.blockHash !== minedBlockHash) {
      await store.markMined(db, id, verdict.receipt);
    } else if (verdict.is === "lost") {
      await store.markMined(db, id, null);
      chain.metrics.count("lost");
    } else if (verdict.is === "suspected" && foreignSince === null) {
      await store.markSuspected(db, id, verdict.since);
    } else if (verdict.is === "displaced") {
      await noteDisplaced(ctx, sent);
    }
  }
}

/** Queues a transaction again whose nonce another one has used. */
async function noteDisplaced({ db, clock, chain }: ChainContext, sent: Sent): Promise<void> {
  const { id, nonce, kind } = sent;
  if (await isInFinalBlock(chain, sent)) {
    const message = "the block of a transaction is there, but no receipt";
    chain.metrics.raise("node_refused", { nonce, kind, message });
    return;
  }
  if (!(await store.requeue(db, { id, nonce }, clock.now()))) return;
  chain.metrics.count("displaced");
  chain.metrics.raise("nonce_taken", { nonce, kind });
}

/** Resends what is overdue or was lost with its block, and raises the fees of the first few that wait too long. */
async function resendLate(ctx: ChainContext, judged: readonly Judged[]): Promise<void> {
  const late = judged.filter(({ verdict: { is } }) => is === "overdue" || is === "lost");
  if (late.length === 0) return;
  const resent = new Set<string>();
  await doEach([
    async () => bumpSlow(ctx, late, resent),
    async () => {
      const ids = late.map(({ sent }) => sent.id).filter((id) => !resent.has(id));
      if (ids.length > 0) await resend(ctx, ids);
    },
  ]);
}

async function resend(ctx: ChainContext, ids: readonly string[]): Promise<Reception> {
  const bytes = await store.takeBytes(ctx.db, ids, ctx.clock.now());
  const reception = await broadcast(ctx, bytes);
  ctx.chain.metrics.count("resent", bytes.length);
  return reception;
}

/**
 * Raises the fees of slow transactions. Each is first resent unchanged: if the node refuses it for another reason than
 * its fee, for example because the account cannot pay, a higher fee would not help.
 *
 * @param resent collects the ids of those that were sent; complete even if this throws
 */
async function bumpSlow(
  ctx: ChainContext,
  late: readonly Judged[],
  resent: Set<string>,
): Promise<void> {
  const isSlow = ({ verdict }: Judged): boolean =>
    verdict.is === "overdue" && verdict.needs === "bump";
  const slow = late.filter(isSlow).slice(0, bumpsMax);
  if (slow.length === 0) return;
  const market = await readFees(ctx.chain);
  for (const { sent } of slow) {
    const reception = await resend(ctx, [sent.id]);
    resent.add(sent.id);
    if (reception !== "refused") await bump(ctx, sent, market);
  }
}

/**
 * Closes a gap: all sent transactions have nonces above one that the chain has not used. Either a reorganisation deeper
 * than `CONFIRMATIONS` took final transactions back: then their bytes are sent again. Or a foreign transaction that had
 * used the nonce is gone: then an empty one takes its place. A nonce that was ever ours is not filled, even if its
 * bytes were purged, since the gap may only be that the node is far behind.
 *
 * @param given.from the next nonce of the account, by the newest block
 * @param given.below the lowest nonce among the sent transactions
 */
async function closeGap(
  ctx: ChainContext,
  signer: Address,
  given: { from: number; below: number },
): Promise<void> {
  const { from, below } = given;
  if (from >= below) return;
  const { db, chain, clock } = ctx;
  const bytes = await store.listFinalBytes(db, signer, { from, below });
  if (bytes.length > 0) {
    chain.metrics.raise("deep_reorganisation", { from, below });
    await broadcast(ctx, bytes);
  }
  if (signer !== chain.operator || (await store.hasNonce(db, signer, from))) return;
  const subjectId = `${chain.operator}:${from}`;
  const fill = { kind: ownKinds.fill, subjectId, to: chain.operator, data: "0x" as const };
  await store.insertTransaction(db, fill, clock.now());
}

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

/** A transaction that will not change any more. */
export interface FinalTransaction {
  readonly id: string;
  readonly kind: string;
  readonly subjectId: string;
  readonly hash: Hex32;
  /** The account that sent it. */
  readonly signer: Address;
  readonly status: "succeeded" | "reverted";
  readonly blockNumber: number;
  /** Unix seconds, as the block says. */
  readonly blockTime: number;
}

/**
 * Handlers of final transactions, by kind. Each is called in the database transaction that marks them final, with all
 * of its kind that became final together. If it throws, nothing is marked, and it is called again later.
 */
export type FinalHandlers = Readonly<
  Record<string, (tx: Queryable, done: readonly FinalTransaction[]) => Promise<void>>
>;

/**
 * For this long only one process observes sent transactions. `quick` is for chains that are final after one block,
 * which are local ones: every process is woken by each of their blocks.
 */
const observeMs = { quick: 25, deep: 3_000 };
/** More than can be in flight. */
const sentMax = 200;
/** How many fees one run raises: the lowest nonces hold up all others. */
const bumpsMax = 4;
/** How many rounds one run makes at most, so that other jobs get their turn. */
const roundsMax = 20;

/**
 * Signs and sends what is queued, and observes what was sent. Any number of processes may do so at once. Without work
 * it costs one database call.
 *
 * @param options.only looks after this kind alone; for the start, when nobody can be told yet
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
    // What is final has left room for what waits, and nobody else is woken for that.
    const hasRoom = hasDue && finished > 0;
    if (!signed.hasMore && !hasRoom) return;
  }
}

/**
 * Runs the steps one after the other, even if earlier ones fail.
 *
 * @throws what failed; that a node or signer is away only where nothing else failed
 */
async function doEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => faults.push(error));
  throwGravest(faults, "several things failed in the outbox");
}

/**
 * A quick chain wakes nobody again for a block that comes just after an observation, so that one is made up for at the
 * end of the interval. If it is taken again by then, somebody has looked since the block came.
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
      // With one kind alone, other transactions may have the nonces in between.
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
  // On another chain the account has other nonces and none of our transactions, and everything would look lost.
  const [view] = await Promise.all([readView(chain, signer, hashes), refuseOtherChain(ctx)]);
  const rules = { now: clock.now(), patience: patienceWith(signer, chain) };
  return { view, judged: sent.map((each) => ({ sent: each, verdict: judge(each, view, rules) })) };
}

function patienceWith(signer: Address, chain: ChainContext["chain"]): Patience {
  const { embedded, remote } = patienceOf;
  if (chain.isEmbedded) return embedded;
  // Fees of a former operator's account cannot be raised: nobody here can sign for it.
  return signer === chain.operator ? remote : { ...remote, bumpSeconds: null };
}

/** Marks what is final, kind by kind, so that a failing handler holds up no other kind. */
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

/** Stores what was observed, if it is new. */
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

/** Queues a transaction again whose nonce another one took. */
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

/** Sends again what is overdue or was lost with its block, and raises the fees of the first few that wait too long. */
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
 * Raises the fees of slow transactions. Each is first sent once more as it is: if the account cannot pay for it, or the
 * node refuses it for another reason than its fee, a higher fee would only make it dearer.
 *
 * @param resent gets the ids of those that were handed over, also where one fails
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
 * Closes a gap: everything that waits is above a nonce that the chain has not seen. A reorganisation deeper than
 * `CONFIRMATIONS` took final transactions back, and their bytes are sent again; or a foreign transaction that had used
 * the nonce is gone, and an empty one takes its place. A nonce of ours is never filled: a node that is far behind counts
 * fewer, also where our bytes are forgotten.
 */
async function closeGap(
  ctx: ChainContext,
  signer: Address,
  { from, below }: { from: number; below: number },
): Promise<void> {
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

import type { Address, Hex32 } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import type { ChainContext } from "./context.ts";
import { readFees, readView } from "./chain-view.ts";
import { refuseOtherChain } from "./checked-node.ts";
import { throwGravest } from "./node.ts";
import { bump, broadcast, type Reception, signDue } from "./sign.ts";
import * as store from "./transaction-store.ts";
import { judge, ownKinds, patienceOf, type Verdict } from "./transaction.ts";

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
 * Who is told of final transactions, by kind; called in the database transaction that marks them final, with all of
 * the kind that became final together. When it throws nothing is marked, and it is called again.
 */
export type FinalHandlers = Readonly<
  Record<string, (tx: Queryable, done: readonly FinalTransaction[]) => Promise<void>>
>;

/**
 * In this time one process alone looks after sent transactions. Where one block is final the chain is a local one, and
 * every process is woken by each of its blocks.
 */
const observeMs = { quick: 25, deep: 3_000 };
/** More than can be in flight. */
const sentMax = 200;
/** Those with the lowest nonces hold up the others. */
const bumpsMax = 4;
/** What one run does at most before others get their turn. */
const roundsMax = 20;

/**
 * Does what is due: signs and sends what is queued, and looks after what was sent. Any number of processes may do so
 * at once. Without work it costs one database call.
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
    const sign = async (): Promise<void> => {
      if (hasDue) signed = await signDue(ctx, options);
    };
    const lookAfter = async (): Promise<void> => {
      if (!hasSent && signed.count === 0) return;
      // A chain that mines what it is handed has done so by now.
      const isMined = chain.confirmations === 1 && signed.count > 0;
      if (isMined || (await claimObservation(ctx))) await observe(ctx, handlers, options);
    };
    await doEach([sign, lookAfter]);
    if (!signed.hasMore) return;
  }
}

/**
 * Does one after the other, whatever becomes of those before.
 *
 * @throws what failed; that a node or signer is away only where nothing else failed
 */
async function doEach(steps: readonly (() => Promise<void>)[]): Promise<void> {
  const faults: unknown[] = [];
  for (const step of steps) await step().catch((error: unknown) => faults.push(error));
  throwGravest(faults, "several things failed in the outbox");
}

async function claimObservation({ chain, db, clock }: ChainContext): Promise<boolean> {
  const intervalMs = chain.confirmations === 1 ? observeMs.quick : observeMs.deep;
  return store.claimObservation(db, chain.operator, { nowMs: clock.nowMs(), intervalMs });
}

type Sent = Awaited<ReturnType<typeof store.listSent>>[number];
type Judged = { readonly sent: Sent; readonly verdict: Verdict };

async function observe(
  ctx: ChainContext,
  handlers: FinalHandlers,
  { only }: { only?: string },
): Promise<void> {
  const all = await store.listSent(ctx.db, { limit: sentMax, only: only ?? null });
  const signers = Map.groupBy(all, (each) => each.signer);
  const looks = [...signers].map(([signer, sent]) => async () => {
    const { view, judged } = await judgeAll(ctx, signer, sent);
    const below = sent[0]?.nonce ?? 0;
    await doEach([
      async () => finish(ctx, judged, handlers),
      async () => note(ctx, judged),
      async () => push(ctx, judged),
      // Of one kind alone it is not known what lies between.
      async () =>
        only === undefined ? closeGap(ctx, signer, { from: view.nonces, below }) : undefined,
    ]);
  });
  await doEach(looks);
}

async function judgeAll(
  ctx: ChainContext,
  signer: Address,
  sent: readonly Sent[],
): Promise<{ view: { nonces: number }; judged: Judged[] }> {
  const { chain, clock } = ctx;
  const hashes = sent.flatMap((each) => each.hashes);
  // On another chain the same account has other nonces, and none of our transactions.
  const [view] = await Promise.all([readView(chain, signer, hashes), refuseOtherChain(ctx)]);
  const { embedded, remote } = patienceOf;
  // Nobody can sign for an account that is not the operator's any more.
  const others = { ...remote, bumpSeconds: null };
  const patience = chain.isEmbedded ? embedded : signer === chain.operator ? remote : others;
  const rules = { now: clock.now(), patience };
  return { view, judged: sent.map((each) => ({ sent: each, verdict: judge(each, view, rules) })) };
}

/** Marks what is final, kind by kind, so that one kind's failure keeps no other waiting. */
async function finish(
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
    const done = marks.filter((mark) => ids.has(mark.id)).map(announced);
    if (done.length > 0) await handler?.(tx, done);
    return done;
  });
  for (const each of fresh) {
    ctx.chain.metrics.transactions.inc({ event: each.status });
    if (each.status === "reverted")
      ctx.chain.metrics.raise("reverted", { kind: each.kind, hash: each.hash });
  }
}

function announced(mark: Mark): FinalTransaction {
  const { id, kind, subjectId, hash, signer, status, blockNumber, blockTime } = mark;
  return { id, kind, subjectId, hash, signer, status, blockNumber, blockTime };
}

/** Writes down what was seen, where it is news. */
async function note(ctx: ChainContext, judged: readonly Judged[]): Promise<void> {
  const { db, clock, chain } = ctx;
  for (const { sent, verdict } of judged) {
    const { id, nonce, minedBlockHash, foreignSince } = sent;
    if (verdict.is === "mined" && verdict.receipt.blockHash !== minedBlockHash) {
      await store.markMined(db, id, verdict.receipt);
    } else if (verdict.is === "lost") {
      await store.markMined(db, id, null);
      chain.metrics.transactions.inc({ event: "lost" });
    } else if (verdict.is === "suspected" && foreignSince === null) {
      await store.markSuspected(db, id, verdict.since);
    } else if (verdict.is === "displaced") {
      const isTaken = await store.requeue(db, { id, nonce }, clock.now());
      if (!isTaken) continue;
      chain.metrics.transactions.inc({ event: "displaced" });
      chain.metrics.raise("nonce_taken", { nonce, kind: sent.kind });
    }
  }
}

/** Hands over again what is overdue or was lost with its block; the first few that wait too long are outbid. */
async function push(ctx: ChainContext, judged: readonly Judged[]): Promise<void> {
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
  ctx.chain.metrics.transactions.inc({ event: "resent" }, bytes.length);
  return reception;
}

/**
 * Hands each over once more first: what the account cannot pay, or the node refuses for another reason than its fee,
 * would only become dearer.
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
 * Everything that waits is above a nonce that the chain has not seen: either a reorganisation deeper than
 * `CONFIRMATIONS` took final transactions back, whose bytes are handed over again, or the foreign transaction that used
 * it is gone, and an empty one takes its place.
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
    return;
  }
  if (signer !== chain.operator) return;
  const subjectId = `${chain.operator}:${from}`;
  const fill = { kind: ownKinds.fill, subjectId, to: chain.operator, data: "0x" as const };
  await store.insertTransaction(db, fill, clock.now());
}

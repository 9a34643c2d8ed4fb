import type { Hex } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import { countNonces, estimateGas, readFees } from "./chain-view.ts";
import { refuseOtherChain } from "./checked-node.ts";
import type { ChainContext } from "./context.ts";
import { RpcError } from "./node.ts";
import { isOfNode, isOutOfFunds, isTooEarly, isUnderpaid } from "./refusal.ts";
import { OtherSignature } from "./signer.ts";
import { shareOfCap, spendOnBump, takeWithinCap, unpaidKinds } from "./spending-cap.ts";
import * as store from "./transaction-store.ts";
import {
  bumpedFees,
  costOf,
  type Fees,
  gasAtLeast,
  isOverpaid,
  noncesFrom,
  refusalPauseSeconds,
  refusalsMax,
  type SentTransaction,
} from "./transaction.ts";

/** Nodes drop transactions far beyond the next nonce, and each observation asks for all that are in flight. */
const inFlightMax = 32;
/** The most that one transaction may take (EIP-7825). */
const gasMax = 16_777_216n;
/** The gas limit of a transaction that is sent although the node says that it would revert. */
const gasOfRefused = 3_000_000n;
/** Kinds that submit members' approvals to the wallet of a business. */
const approvedKinds: ReadonlySet<string> = new Set(["business.record", "business.govern"]);
/**
 * They may cost more than estimated: if the removal of a member who approved begins in between, that member's approval
 * cancels it (three slots and an event, 32,000 gas).
 */
const gasOfEndedRemoval = 40_000n;
const spendPauseSeconds = 60;
/** The rules of a remote signer are changed by hand, so there is no point in asking again sooner. */
const signerPauseSeconds = 15;
const weiPerGwei = 1_000_000_000n;

interface Prepared {
  readonly due: readonly (store.DueTransaction & { readonly gasLimit: bigint })[];
  readonly fees: Fees;
  /** How many nonces of the operator the chain has used. */
  readonly chainCount: number;
}

/**
 * Gives nonces to queued transactions, signs them, stores nonce, bytes and hash in one database transaction, and only
 * then sends them. Only the process that has locked the signer's row gives out nonces, so none is skipped or used
 * twice.
 *
 * @returns how many were signed, and whether there may be more to sign
 */
export async function signDue(
  ctx: ChainContext,
  { only }: { only?: string } = {},
): Promise<{ count: number; hasMore: boolean }> {
  const now = ctx.clock.now();
  const looked = { now, limit: inFlightMax, only: only ?? null, sharing: unpaidKinds };
  const due = await store.listDue(ctx.db, looked);
  const prepared = due.length === 0 ? null : await prepare(ctx, due);
  if (prepared === null || prepared.due.length === 0) return { count: 0, hasMore: false };
  const raws = await ctx.db.transaction(async (tx) => signAll(ctx, tx, prepared));
  if (raws.length > 0) {
    ctx.chain.metrics.count("signed", raws.length);
    await broadcast(ctx, raws);
  }
  return { count: raws.length, hasMore: raws.length === inFlightMax };
}

/** Makes all calls of the node, so that none is needed while the signer is locked. */
async function prepare(ctx: ChainContext, due: readonly store.DueTransaction[]): Promise<Prepared> {
  const { chain } = ctx;
  const [chainCount, fees, estimates] = await Promise.all([
    countNonces(chain, chain.operator, "latest"),
    readFees(chain),
    Promise.all(due.map(async (each) => gasLimitOf(ctx, each))),
    refuseOtherChain(ctx),
  ]);
  const ready = due.flatMap((each, at) => {
    const gasLimit = estimates[at];
    return gasLimit === undefined || gasLimit === null ? [] : [{ ...each, gasLimit }];
  });
  return { due: ready, fees, chainCount };
}

/**
 * The gas limit for a transaction; on the embedded chain the maximum, because gas is free there. Null if the node does
 * not estimate it, mostly because it would revert: then it is postponed, a few times.
 */
async function gasLimitOf(ctx: ChainContext, due: store.DueTransaction): Promise<bigint | null> {
  if (ctx.chain.isEmbedded) return gasMax;
  const { to, data } = due;
  try {
    const estimate = await estimateGas(ctx.chain, { from: ctx.chain.operator, to, data });
    const roomy = estimate + estimate / 4n + (approvedKinds.has(due.kind) ? gasOfEndedRemoval : 0n);
    if (roomy > gasMax) return gasMax;
    // With less no node accepts it, and everything sent later would wait for its nonce.
    const least = gasAtLeast(data);
    return roomy < least ? least : roomy;
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const { metrics, operator } = ctx.chain;
    const { message } = error;
    const until = ctx.clock.now() + refusalPauseSeconds(due.refusals);
    // Neither says anything about the transaction, so neither counts as a refusal.
    if (isOutOfFunds(error) || isOfNode(error)) {
      metrics.raise(alarmOf(error), { operator, kind: due.kind, message });
      await store.putOff(ctx.db, [due.id], until);
      return null;
    }
    if (due.refusals >= refusalsMax) return gasOfRefused;
    if (await store.putOffRefused(ctx.db, due, until))
      metrics.raise("would_revert", { kind: due.kind, message });
    return null;
  }
}

async function signAll(ctx: ChainContext, tx: Queryable, prepared: Prepared): Promise<Hex[]> {
  const { chain, clock } = ctx;
  const locked = await store.lockSigner(tx, chain.operator);
  if (locked === null) return [];
  alarmAtForeignNonces(ctx, { counted: prepared.chainCount, given: locked.nextNonce });
  const { stillDue, inFlight, holes } = await store.readNonces(tx, chain.operator, {
    ids: prepared.due.map((each) => each.id),
    chainCount: prepared.chainCount,
    nextNonce: locked.nextNonce,
  });
  const isDue = new Set(stillDue);
  // There is always room for filling holes: everything in flight may be waiting for one.
  const room = Math.max(holes.length, inFlightMax - inFlight);
  const due = prepared.due.filter((each) => isDue.has(each.id)).slice(0, room);
  const { forms, nextNonce, spent } = await signWilling(ctx, tx, {
    ...prepared,
    ...locked,
    holes,
    due,
  });
  if (forms.length === 0) return [];
  const state = { address: chain.operator, nextNonce, spent, now: clock.now() };
  const saved = await store.saveSigned(tx, forms, state);
  if (saved !== forms.length) throw new Error("a transaction was signed twice");
  // In the order of their nonces, as `noncesFrom` gives them out.
  return forms.map((form) => form.raw);
}

/**
 * Raises an alarm if the chain has used nonces that were not given out here. Nonces are stored before anything is sent,
 * so somebody else uses the account, mostly a process on a copy of the database. An account that has sent nothing here
 * yet may have been used before.
 *
 * @param nonces.counted how many the chain has used
 * @param nonces.given how many were given out here
 */
function alarmAtForeignNonces(
  { chain }: ChainContext,
  nonces: { counted: number; given: number },
): void {
  const { counted, given } = nonces;
  if (given === 0 || counted <= given) return;
  const message = "the account has sent transactions that this installation does not know";
  chain.metrics.raise("nonce_taken", { from: given, below: counted, message });
}

type Locked = Prepared & store.LockedSigner & { readonly holes: readonly number[] };

/**
 * Signs what the cap allows and the signer agrees to sign. If the signer refuses some, the others are signed again with
 * other nonces, so that none is skipped, and the first signatures are discarded unsent.
 */
async function signWilling(
  ctx: ChainContext,
  tx: Queryable,
  given: Locked,
): Promise<{ forms: store.SignedForm[]; nextNonce: number; spent: Locked["spent"] }> {
  const { taken, waiting, spent } = takeWithinCap(
    given.due,
    ({ gasLimit }) => costOf(gasLimit, given.fees),
    { spent: given.spent, now: ctx.clock.now(), capWei: capWeiOf(ctx) },
  );
  const { nonces, nextNonce } = noncesFrom(given, taken.length);
  const signed = await Promise.all(
    taken.map(async (each, at) => signForm(ctx, each, { nonce: nonces[at], fees: given.fees })),
  );
  const forms = signed.filter((form) => form !== null);
  if (forms.length < taken.length) {
    const refused = new Set(taken.filter((_, at) => signed[at] === null).map(({ id }) => id));
    const until = ctx.clock.now() + signerPauseSeconds;
    await store.putOff(tx, [...refused], until);
    const due = given.due.filter(({ id }) => !refused.has(id));
    return signWilling(ctx, tx, { ...given, due });
  }
  if (waiting.length > 0) await waitForCap(ctx, tx, { ...given, due: waiting });
  return { forms, nextNonce, spent };
}

/** Null if the signer refuses the transaction, or returns another one. */
async function signForm(
  { chain }: ChainContext,
  { id, kind, to, data, gasLimit }: Omit<Prepared["due"][number], "refusals">,
  { nonce, fees }: { nonce: number | undefined; fees: Fees },
): Promise<store.SignedForm | null> {
  if (nonce === undefined) throw new Error("each transaction has a nonce");
  const { chainId } = chain;
  try {
    const { raw, hash } = await chain.signer.sign({ chainId, nonce, to, data, gasLimit, fees });
    return { id, nonce, gasLimit, fees, raw, hash };
  } catch (error) {
    if (!(error instanceof RpcError || error instanceof OtherSignature)) throw error;
    chain.metrics.raise("signer_refused", { id, kind, message: error.message });
    return null;
  }
}

/**
 * Postpones transactions that do not fit into today's cap. One that alone costs more than a day's share waits until the
 * cap is raised or fees fall.
 */
async function waitForCap(
  ctx: ChainContext,
  tx: Queryable,
  { due, fees }: Pick<Prepared, "due" | "fees">,
): Promise<void> {
  ctx.chain.metrics.raise("spend_cap", { waiting: due.length });
  for (const { id, kind, gasLimit } of due) {
    const capWei = shareOfCap(kind, capWeiOf(ctx));
    alarmAboveCap(ctx, { id, kind, costWei: costOf(gasLimit, fees), capWei });
  }
  const ids = due.map(({ id }) => id);
  const until = ctx.clock.now() + spendPauseSeconds;
  await store.putOff(tx, ids, until);
}

/** Raises an alarm for a transaction that alone exceeds the cap: waiting for another day does not help it. */
function alarmAboveCap(
  { chain }: ChainContext,
  given: { id: string; kind: string; costWei: bigint; capWei: bigint },
): void {
  const { id, kind, costWei, capWei } = given;
  if (costWei > capWei) chain.metrics.raise("cost_above_cap", { id, kind, costWei: `${costWei}` });
}

function capWeiOf({ config }: ChainContext): bigint {
  return BigInt(Math.round(config.chainSpendCap * 1e9)) * weiPerGwei;
}

/** Signs and sends a transaction again with the same nonce and a higher fee, if cap and market allow it. */
export async function bump(ctx: ChainContext, sent: SentTransaction, market: Fees): Promise<void> {
  const { chain, clock } = ctx;
  const raw = await ctx.db.transaction(async (tx) => {
    const locked = await store.lockSigner(tx, chain.operator);
    const found = locked === null ? null : await store.findForBump(tx, sent);
    if (locked === null || found === null) return null;
    const { nonce, gasLimit } = found;
    const fees = bumpedFees(found.fees, market);
    if (isOverpaid(fees, market)) {
      chain.metrics.raise("fee_too_low", { nonce, kind: sent.kind });
      return null;
    }
    const more = costOf(gasLimit, fees) - costOf(gasLimit, found.fees);
    const limits = { now: clock.now(), capWei: capWeiOf(ctx) };
    const spent = spendOnBump(locked.spent, { kind: sent.kind, wei: more }, limits);
    if (spent === null) {
      chain.metrics.raise("spend_cap", { waiting: 1 });
      alarmAboveCap(ctx, { ...sent, costWei: more, capWei: limits.capWei });
      return null;
    }
    const form = await signForm(ctx, { ...sent, ...found }, { nonce, fees });
    if (form === null) return null;
    const state = { address: chain.operator, nextNonce: locked.nextNonce, spent, now: clock.now() };
    await store.saveSigned(tx, [form], state);
    return form.raw;
  });
  if (raw === null) return;
  chain.metrics.count("bumped");
  await broadcast(ctx, [raw]);
}

/** What the node did with the bytes: `underpaid` if only the fee was too low. */
export type Reception = "taken" | "underpaid" | "refused";

/** Sends signed bytes to the node. If it refuses some, raises an alarm; they are stored and sent again later. */
export async function broadcast(ctx: ChainContext, raws: readonly Hex[]): Promise<Reception> {
  try {
    await submitInTurn(ctx, raws);
    return "taken";
  } catch (error) {
    if (!(error instanceof RpcError)) throw error;
    const alarm = alarmOf(error);
    ctx.chain.metrics.raise(alarm, { operator: ctx.chain.operator, message: error.message });
    return alarm === "fee_too_low" ? "underpaid" : "refused";
  }
}

function alarmOf(refusal: RpcError): "out_of_funds" | "fee_too_low" | "node_refused" {
  if (isOutOfFunds(refusal)) return "out_of_funds";
  return isUnderpaid(refusal) ? "fee_too_low" : "node_refused";
}

/**
 * A node that takes nonces only in order, such as that of the embedded chain, refuses a transaction that arrives before
 * those with lower nonces. Another process may have stored these and not sent them yet, so this sends them too.
 */
async function submitInTurn({ chain, db }: ChainContext, raws: readonly Hex[]): Promise<void> {
  try {
    await chain.node.submit(raws);
  } catch (error) {
    if (!isTooEarly(error)) throw error;
    await chain.node.submit(await store.listUnminedBytes(db, chain.operator));
  }
}

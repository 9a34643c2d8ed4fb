import type { Hex, Hex32 } from "@svc/protocol";
import { bufferOfHex } from "../platform/hex.ts";

/** How long to wait for a sent transaction before something is done about it, in seconds. */
export interface Patience {
  /** Until the same bytes are sent again. */
  readonly resendSeconds: number;
  /** Until the fee is raised; null for never. */
  readonly bumpSeconds: number | null;
  /** How long its nonce must have been used by another transaction before it gets a new one. */
  readonly foreignSeconds: number;
}

/** The embedded chain has no fees and mines at once; on others a block takes seconds and a busy hour raises the fee. */
export const patienceOf = {
  embedded: { resendSeconds: 1, bumpSeconds: null, foreignSeconds: 5 },
  remote: { resendSeconds: 15, bumpSeconds: 60, foreignSeconds: 30 },
} as const satisfies Record<string, Patience>;

/** A transaction that has a nonce and is not final. */
export interface SentTransaction {
  readonly id: string;
  readonly kind: string;
  readonly subjectId: string;
  readonly nonce: number;
  /** The hashes of every form in which it was signed, newest first. */
  readonly hashes: readonly Hex32[];
  readonly minedBlockHash: Hex32 | null;
  readonly foreignSince: number | null;
  readonly signedAt: number;
  readonly sentAt: number;
}

export interface Receipt {
  readonly hash: Hex32;
  readonly blockHash: Hex32;
  readonly blockNumber: number;
  readonly succeeded: boolean;
}

/** A snapshot of the chain. */
export interface ChainView {
  /** The newest block that is final. */
  readonly finalNumber: number;
  /** How many nonces of the signer the final blocks have used. */
  readonly finalNonces: number;
  /** Receipts of the transactions in question, by hash. */
  readonly receipts: ReadonlyMap<Hex32, Receipt>;
  /** The blocks of these receipts that the chain holds now, by number. */
  readonly blocks: ReadonlyMap<number, { readonly hash: Hex32; readonly time: number }>;
}

export type Verdict =
  | { readonly is: "final"; readonly receipt: Receipt; readonly blockTime: number }
  | { readonly is: "mined"; readonly receipt: Receipt }
  /** It was in a block that the chain no longer holds. */
  | { readonly is: "lost" }
  /** Its nonce was used by another transaction, and that is final. */
  | { readonly is: "displaced" }
  /** That seems so, but not for long enough yet. */
  | { readonly is: "suspected"; readonly since: number }
  | { readonly is: "overdue"; readonly needs: "resend" | "bump" }
  | { readonly is: "waiting" };

/**
 * Judges a sent transaction. It is only displaced, and so gets another nonce, once none of its forms can be mined any
 * more, or it would be executed twice: the final blocks have used its nonce, none of its forms has a receipt, and both
 * were seen twice, `foreignSeconds` apart (a node that lags may know the nonces before the receipts).
 */
export function judge(
  sent: SentTransaction,
  view: ChainView,
  { now, patience }: { now: number; patience: Patience },
): Verdict {
  const receipt = sent.hashes
    .map((hash) => view.receipts.get(hash))
    .find(
      (each) => each !== undefined && view.blocks.get(each.blockNumber)?.hash === each.blockHash,
    );
  if (receipt !== undefined) {
    const block = view.blocks.get(receipt.blockNumber);
    return block !== undefined && receipt.blockNumber <= view.finalNumber
      ? { is: "final", receipt, blockTime: block.time }
      : { is: "mined", receipt };
  }
  if (sent.minedBlockHash !== null) return { is: "lost" };
  const hasReceipt = sent.hashes.some((hash) => view.receipts.has(hash));
  if (view.finalNonces > sent.nonce && !hasReceipt) {
    const since = sent.foreignSince ?? now;
    return now - since >= patience.foreignSeconds
      ? { is: "displaced" }
      : { is: "suspected", since };
  }
  return judgeWaiting(sent, { now, patience });
}

function judgeWaiting(
  sent: SentTransaction,
  { now, patience }: { now: number; patience: Patience },
): Verdict {
  if (patience.bumpSeconds !== null && now - sent.signedAt >= patience.bumpSeconds)
    return { is: "overdue", needs: "bump" };
  return now - sent.sentAt >= patience.resendSeconds
    ? { is: "overdue", needs: "resend" }
    : { is: "waiting" };
}

/** The fees per unit of gas of a transaction (EIP-1559), in wei. */
export interface Fees {
  readonly maxFee: bigint;
  readonly priorityFee: bigint;
}

/** Leaves room for the base fee to double, which takes six full blocks in a row. */
export function feesAt(baseFee: bigint, priorityFee: bigint): Fees {
  return { maxFee: baseFee * 2n + priorityFee, priorityFee };
}

/** Nodes replace a transaction only if both fees are 10 % higher; an eighth leaves room for rounding. */
export function bumpedFees(old: Fees, market: Fees): Fees {
  return {
    maxFee: atLeast(raise(old.maxFee), market.maxFee),
    priorityFee: atLeast(raise(old.priorityFee), market.priorityFee),
  };
}

function raise(fee: bigint): bigint {
  return fee + fee / 8n + 1n;
}

function atLeast(one: bigint, other: bigint): bigint {
  return one > other ? one : other;
}

/** Above this multiple of the market's fee something else must be wrong, and paying more does not help. */
const overpayMax = 10n;

/** Whether a fee is so far above the market that it is not raised any more. */
export function isOverpaid(fees: Fees, market: Fees): boolean {
  return fees.maxFee > market.maxFee * overpayMax;
}

/** The most that a transaction can cost, in wei. */
export function costOf(gasLimit: bigint, fees: Fees): bigint {
  return gasLimit * fees.maxFee;
}

/** The nonces to give out next: first the holes among those given out, because everything above one waits for it. */
export function noncesFrom(
  given: { chainCount: number; nextNonce: number; holes: readonly number[] },
  count: number,
): { nonces: number[]; nextNonce: number } {
  const fromHoles = given.holes.slice(0, count);
  const start = Math.max(given.chainCount, given.nextNonce);
  const fresh = Array.from({ length: count - fromHoles.length }, (_, at) => start + at);
  return { nonces: [...fromHoles, ...fresh], nextNonce: start + fresh.length };
}

/** After this many estimates that a transaction would revert, it is sent nevertheless, and its receipt decides. */
export const refusalsMax = 5;

/**
 * 1, 2, 4, 8, then 16 s: whatever is still missing (a role, another transaction) usually arrives with the next blocks.
 */
export function refusalPauseSeconds(refusals: number): number {
  return 2 ** Math.min(refusals, 4);
}

/** The gas limit below which a chain refuses any transaction with these data (EIP-7623). */
export function gasAtLeast(data: Hex): bigint {
  return 21_000n + 10n * BigInt(tokensOf(data));
}

/** The tokens by which transaction data are charged (EIP-7623): one for a zero byte, four for any other. */
export function tokensOf(data: Hex): number {
  let tokens = 0;
  for (const byte of bufferOfHex(data)) tokens += byte === 0 ? 1 : 4;
  return tokens;
}

/** The kinds that belong to this slice; they have no handler. */
export const ownKinds = { deploy: "contract.deploy", fill: "nonce.fill" } as const;

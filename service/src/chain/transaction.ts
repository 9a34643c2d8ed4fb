import type { Hex, Hex32 } from "@svc/protocol";
import { bufferOfHex } from "../platform/hex.ts";

/** How long a sent transaction is left alone, in seconds. */
export interface Patience {
  /** Until the same bytes are sent again. */
  readonly resendSeconds: number;
  /** Until the fee is raised; null where there are no fees. */
  readonly bumpSeconds: number | null;
  /** For how long its nonce must have been used by another transaction before it gets a new one. */
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
  /** Of every form in which it was signed, newest first. */
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

/** What the chain says, read together. */
export interface ChainView {
  /** The newest block that is final. */
  readonly finalNumber: number;
  /** How many nonces of the signer the final blocks have used. */
  readonly finalNonces: number;
  /** Of the transactions in question, by hash. */
  readonly receipts: ReadonlyMap<Hex32, Receipt>;
  /** The blocks of these receipts that the chain holds now, by number. */
  readonly blocks: ReadonlyMap<number, { readonly hash: Hex32; readonly time: number }>;
}

export type Verdict =
  | { readonly is: "final"; readonly receipt: Receipt; readonly blockTime: number }
  | { readonly is: "mined"; readonly receipt: Receipt }
  /** It was in a block that the chain no longer holds. */
  | { readonly is: "lost" }
  /** Its nonce was used by somebody else, and that is final. */
  | { readonly is: "displaced" }
  | { readonly is: "suspected"; readonly since: number }
  | { readonly is: "overdue"; readonly needs: "resend" | "bump" }
  | { readonly is: "waiting" };

/**
 * Says what has become of a transaction. It never gets another nonce while one of its forms may still be mined: only
 * when the final blocks have counted past its nonce, none of its forms has a receipt, and both are seen twice,
 * `foreignSeconds` apart (a node that lags may know the count before the receipts).
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

/** What a transaction offers for each unit of gas (EIP-1559), in wei. */
export interface Fees {
  readonly maxFee: bigint;
  readonly priorityFee: bigint;
}

/** Room for the base fee to double, which takes six full blocks in a row. */
export function feesAt(baseFee: bigint, priorityFee: bigint): Fees {
  return { maxFee: baseFee * 2n + priorityFee, priorityFee };
}

/** Nodes replace a transaction only for 10 % more of both; an eighth leaves room for rounding. */
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

/** Above this multiple of the market's fee something else is wrong, and paying more does not help. */
const overpayMax = 10n;

/** Whether a fee is so far above the market that it is not raised any more. */
export function isOverpaid(fees: Fees, market: Fees): boolean {
  return fees.maxFee > market.maxFee * overpayMax;
}

/** What a transaction may cost at most, in wei. */
export function costOf(gasLimit: bigint, fees: Fees): bigint {
  return gasLimit * fees.maxFee;
}

/** Nonces to give out next: holes below what was given out come first, because everything above one waits for it. */
export function noncesFrom(
  given: { chainCount: number; nextNonce: number; holes: readonly number[] },
  count: number,
): { nonces: number[]; nextNonce: number } {
  const fromHoles = given.holes.slice(0, count);
  const start = Math.max(given.chainCount, given.nextNonce);
  const fresh = Array.from({ length: count - fromHoles.length }, (_, at) => start + at);
  return { nonces: [...fromHoles, ...fresh], nextNonce: start + fresh.length };
}

/**
 * After the chain has said this often that a transaction would revert, it is sent all the same, and its receipt
 * decides.
 */
export const refusalsMax = 5;

/**
 * 1, 2, 4, 8, then 16 s: whatever is still missing (a role, another transaction) usually arrives with the next blocks.
 */
export function refusalPauseSeconds(refusals: number): number {
  return 2 ** Math.min(refusals, 4);
}

/** Gas below which no chain takes a transaction with these data, whatever it does with them (EIP-7623). */
export function gasAtLeast(data: Hex): bigint {
  const tokens = bufferOfHex(data).reduce((sum, byte) => sum + (byte === 0 ? 1 : 4), 0);
  return 21_000n + 10n * BigInt(tokens);
}

/** Kinds of this slice's own; no handler is called when they are final. */
export const ownKinds = { deploy: "contract.deploy", fill: "nonce.fill" } as const;

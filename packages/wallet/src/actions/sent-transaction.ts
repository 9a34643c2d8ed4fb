import { sha256 } from "@noble/hashes/sha2";
import {
  bytesOfText,
  hexOfBytes,
  isHexOf,
  isRecord,
  type Hex,
  type Hex32,
  type TxLink,
} from "@svc/protocol";
import type { ChainClient } from "../chain.ts";
import type { WalletContext } from "../context.ts";
import { listHistory, type HistoryEntry } from "../history.ts";
import { addRecord, getRecord, linkKey, putRecord } from "../records.ts";
import { WalletRefusal } from "../refusal.ts";
import type { Trace } from "../request.ts";
import type { StorageKey } from "../storage.ts";

/** A transaction on its way: stored before it is sent, so that no second approval of the link pays again. */
export interface SentTransaction {
  readonly raw: Hex;
  readonly hash: Hex32;
  /** Unix seconds; earlier versions kept none. */
  readonly signedAt?: number;
}

/** A node that lags may know the number of a transaction as used for good before it knows the transaction. */
const secondLookSeconds = 30;

/** The transaction that was signed for a link; one that can never pay any more, by two looks, is forgotten. */
export async function findSent(
  ctx: WalletContext,
  chain: ChainClient,
  link: TxLink,
): Promise<SentTransaction | null> {
  const sent = await readSent(ctx, link);
  if (sent === null) return null;
  if (!(await isVoid(ctx, chain, sent))) {
    await ctx.storage.remove(doubtKeyOf(ctx, link));
    return sent;
  }
  if (!(await isSecondLook(ctx, link, sent))) return sent;
  await forgetSent(ctx, link);
  return null;
}

/** Keeps what was signed, unless something is kept. @returns what is kept then */
export async function keepSent(
  ctx: WalletContext,
  link: TxLink,
  signed: SentTransaction,
): Promise<SentTransaction> {
  const stored = parseSent(await addRecord(ctx, keyOf(ctx, link), signed));
  if (stored === null) throw new WalletRefusal("damaged_state", "the kept transaction is none");
  return stored;
}

/** The payment of a link that the history has from before; null where it has none. */
export async function findPayment(ctx: WalletContext, link: TxLink): Promise<HistoryEntry | null> {
  const linkHash = hashOfLink(link);
  const isPayment = (entry: HistoryEntry): boolean =>
    entry.linkHash === linkHash && entry.outcome === "approved";
  return (await listHistory(ctx)).find(isPayment) ?? null;
}

/** What the history has of a transaction besides its hash. */
export function traceOfSent(link: TxLink, sent: SentTransaction | null): Trace {
  const at = sent?.signedAt;
  return { linkHash: hashOfLink(link), ...(at === undefined ? {} : { at }) };
}

const hashOfLink = (link: TxLink): string => hexOfBytes(sha256(bytesOfText(JSON.stringify(link))));

export async function forgetSent(ctx: WalletContext, link: TxLink): Promise<void> {
  await ctx.storage.remove(doubtKeyOf(ctx, link));
  await ctx.storage.remove(keyOf(ctx, link));
}

/**
 * Whether it failed for good, or lost its number for good to another. Nodes behind one address differ in what they
 * have by now: only what is final says that none of them has it, or will.
 */
async function isVoid(
  { identity }: WalletContext,
  chain: ChainClient,
  { raw, hash }: SentTransaction,
): Promise<boolean> {
  const { parseTransaction } = await import("viem/utils");
  const { nonce = 0 } = parseTransaction(raw);
  const { finalCount, inclusion, isKnown } = await chain.readFate(identity.address, hash);
  if (finalCount <= nonce) return false;
  return inclusion === null ? !isKnown : inclusion.isReverted;
}

/** Whether it looked void some time ago already; the first look is remembered. */
async function isSecondLook(
  ctx: WalletContext,
  link: TxLink,
  { hash }: SentTransaction,
): Promise<boolean> {
  const key = doubtKeyOf(ctx, link);
  const now = await ctx.now();
  const first = await getRecord(ctx, key);
  if (isRecord(first) && first["hash"] === hash && typeof first["at"] === "number")
    return first["at"] + secondLookSeconds <= now;
  await putRecord(ctx, key, { hash, at: now });
  return false;
}

async function readSent(ctx: WalletContext, link: TxLink): Promise<SentTransaction | null> {
  return parseSent(await getRecord(ctx, keyOf(ctx, link)));
}

function parseSent(value: unknown): SentTransaction | null {
  if (!isRecord(value)) return null;
  const { raw, hash, signedAt } = value;
  if (typeof raw !== "string" || !isHexOf(hash, 32)) return null;
  return { raw: raw as Hex, hash, ...(typeof signedAt === "number" ? { signedAt } : {}) };
}

const keyOf = ({ identity }: WalletContext, link: TxLink): StorageKey =>
  linkKey("transaction", identity.address, link);

const doubtKeyOf = (ctx: WalletContext, link: TxLink): StorageKey => `${keyOf(ctx, link)}_doubt`;

import { isHexOf, isRecord, type Hex, type Hex32, type TxLink } from "@svc/protocol";
import type { ChainClient } from "../chain.ts";
import type { WalletContext } from "../context.ts";
import { addRecord, getRecord, linkKey } from "../records.ts";
import { WalletRefusal } from "../refusal.ts";

/** A transaction on its way: stored before it is sent, so that no second approval of the link pays again. */
export interface SentTransaction {
  readonly raw: Hex;
  readonly hash: Hex32;
}

/** The transaction of a link that is on its way; one whose number the account gave to another never arrives. */
export async function findSent(
  ctx: WalletContext,
  chain: ChainClient,
  link: TxLink,
): Promise<SentTransaction | null> {
  const sent = await readSent(ctx, link);
  if (sent === null) return null;
  const { isPast } = await standingOf(ctx, chain, sent);
  if (!isPast || (await chain.knows(sent.hash))) return sent;
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

export async function forgetSent(ctx: WalletContext, link: TxLink): Promise<void> {
  await ctx.storage.remove(keyOf(ctx, link));
}

/**
 * Forgets a transaction that the chain does not have and that cannot be paid beside a new one: its number is taken by
 * another, or is the next one's as well, of which the chain takes one.
 */
export async function forgetIfVoid(
  ctx: WalletContext,
  chain: ChainClient,
  link: TxLink,
): Promise<void> {
  const sent = await readSent(ctx, link);
  if (sent === null) return;
  const { isPast, isNext } = await standingOf(ctx, chain, sent);
  if ((isPast || isNext) && !(await chain.knows(sent.hash))) await forgetSent(ctx, link);
}

/** Read before the chain is asked for the hash: what it has by then counts as known. */
async function standingOf(
  { identity }: WalletContext,
  chain: ChainClient,
  { raw }: SentTransaction,
): Promise<{ isPast: boolean; isNext: boolean }> {
  const { parseTransaction } = await import("viem/utils");
  const { nonce = 0 } = parseTransaction(raw);
  const { latest, pending } = await chain.readNonces(identity.address);
  return { isPast: latest > nonce, isNext: pending === nonce };
}

async function readSent(ctx: WalletContext, link: TxLink): Promise<SentTransaction | null> {
  return parseSent(await getRecord(ctx, keyOf(ctx, link)));
}

function parseSent(value: unknown): SentTransaction | null {
  if (!isRecord(value)) return null;
  const { raw, hash } = value;
  return typeof raw === "string" && isHexOf(hash, 32) ? { raw: raw as Hex, hash } : null;
}

const keyOf = ({ identity }: WalletContext, link: TxLink): ReturnType<typeof linkKey> =>
  linkKey("transaction", identity.address, link);

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
import { chainIdOf } from "../business-wallet.ts";
import { openChain } from "../chain.ts";
import type { WalletContext } from "../context.ts";
import { listHistory, type HistoryEntry } from "../history.ts";
import {
  addRecord,
  getDroppingDamaged,
  getRecord,
  linkKey,
  listRecordKeys,
  putRecord,
} from "../records.ts";
import { WalletRefusal } from "../refusal.ts";
import type { Trace } from "../request.ts";
import type { StorageKey } from "../storage.ts";

/** A transaction on its way: stored before it is sent, so that no second approval of the link pays again. */
export interface SentTransaction {
  readonly raw: Hex;
  readonly hash: Hex32;
  /** Unix seconds; earlier versions did not store it. */
  readonly signedAt?: number;
}

/** A node that lags may report a nonce as used by a final block before it reports the transaction that used it. */
const secondLookSeconds = 30;

/** What is known about a link when it is opened. */
export interface Opened {
  /** The entries that the history has of it, newest first. */
  readonly past: readonly HistoryEntry[];
  /** The past entry that may already have paid, apart from what is approved now; null if there is none. */
  readonly before: HistoryEntry | null;
  /** The transaction that was signed but not fully answered. */
  readonly sent: SentTransaction | null;
  /** The key of the stored transaction, or else the key for the next one that is signed. */
  readonly place: StorageKey;
}

/**
 * Finds the transaction that was signed last for a link; it no longer counts once two looks, some time apart, show that
 * it can never pay. Its record stays even then: another process may already have stored the next one beside it.
 *
 * @param broker whose chain is asked
 * @throws {WalletRefusal} chain_refused if it was signed for another chain
 */
export async function findSent(ctx: WalletContext, broker: string, link: TxLink): Promise<Opened> {
  // Read before the stored transaction, which is deleted once the history has the payment.
  const past = await listPast(ctx, link);
  const place = (await listPlaces(ctx, link)).at(-1) ?? keyOf(ctx, link);
  const sent = parseSent(await getRecord(ctx, place));
  if (sent === null) return { sent, place, past, before: past[0] ?? null };
  const payments = past.filter(isPayment);
  const kept = {
    sent,
    place,
    past,
    before: payments.find(({ txHash }) => txHash !== sent.hash) ?? null,
  };
  if (!(await isVoid(ctx, broker, sent))) {
    await ctx.storage.remove(doubtKeyOf(ctx, link));
    return kept;
  }
  if (!(await isSecondLook(ctx, link, sent))) return kept;
  const next = (numberOf(ctx, link, place) ?? 0) + 1;
  return { ...kept, sent: null, place: `${keyOf(ctx, link)}_${next}` };
}

/**
 * Stores what was signed, unless something is already stored there.
 *
 * @param opened what was known when the link was opened
 * @returns what is stored afterwards
 * @throws {WalletRefusal} invalid_request if another approval has paid the link since, and has deleted what it signed
 */
export async function keepSent(
  ctx: WalletContext,
  link: TxLink,
  { signed, opened }: { signed: SentTransaction; opened: Opened },
): Promise<SentTransaction> {
  const { place, past } = opened;
  const stored = parseSent(await addRecord(ctx, place, signed));
  if (stored === null)
    throw new WalletRefusal("damaged_state", "the stored transaction cannot be read");
  const known = new Set([stored.hash, ...past.filter(isPayment).map(({ txHash }) => txHash)]);
  const payments = (await listPast(ctx, link)).filter(isPayment);
  const other = payments.find(({ txHash }) => !known.has(txHash));
  if (other === undefined) return stored;
  if (stored.hash === signed.hash) await ctx.storage.remove(place);
  throw new WalletRefusal(
    "invalid_request",
    `it was paid meanwhile by ${other.txHash ?? ""}: look at the link again`,
  );
}

async function listPast(ctx: WalletContext, link: TxLink): Promise<readonly HistoryEntry[]> {
  const linkHash = hashOfLink(link);
  return (await listHistory(ctx)).filter((entry) => entry.linkHash === linkHash);
}

const isPayment = ({ outcome }: HistoryEntry): boolean => outcome === "approved";

/** What the history records of a transaction besides its hash: unchanged if the entry exists already. */
export function traceOfSent(link: TxLink, sent: SentTransaction | null, { past }: Opened): Trace {
  const at = sent?.signedAt ?? past.find(({ txHash }) => txHash === sent?.hash)?.at;
  return { linkHash: hashOfLink(link), ...(at === undefined ? {} : { at }) };
}

const hashOfLink = (link: TxLink): string => hexOfBytes(sha256(bytesOfText(JSON.stringify(link))));

/** Deletes what was signed for a link, the latest last: until that is deleted, no new transaction is signed. */
export async function forgetSent(ctx: WalletContext, link: TxLink): Promise<void> {
  await ctx.storage.remove(doubtKeyOf(ctx, link));
  for (const place of await listPlaces(ctx, link)) await ctx.storage.remove(place);
}

/**
 * Whether it can never succeed: it reverted for good, or another transaction used its nonce for good. Nodes behind one
 * address may differ in what they have: only the final block shows that none of them has it, or will.
 */
async function isVoid(
  ctx: WalletContext,
  broker: string,
  { raw, hash }: SentTransaction,
): Promise<boolean> {
  const { parseTransaction } = await import("viem/utils");
  const { nonce = 0, chainId } = parseTransaction(raw);
  const asked = await chainIdOf(ctx, broker);
  if (chainId !== asked)
    throw new WalletRefusal(
      "chain_refused",
      `the transaction was signed for chain ${chainId ?? ""}, but ${broker} has chain ${asked}: it is neither sent there nor signed again`,
    );
  const { finalCount, inclusion, isKnown } = await openChain(ctx, broker).readFate(
    ctx.identity.address,
    hash,
  );
  if (finalCount <= nonce) return false;
  return inclusion === null ? !isKnown : inclusion.isReverted;
}

/** Whether it already looked void some time ago; the first look is stored. */
async function isSecondLook(
  ctx: WalletContext,
  link: TxLink,
  { hash }: SentTransaction,
): Promise<boolean> {
  const key = doubtKeyOf(ctx, link);
  const now = await ctx.now();
  // A record that cannot be read counts as absent: then this is the first look.
  const first = await getDroppingDamaged(ctx, key);
  if (isRecord(first) && first["hash"] === hash && typeof first["at"] === "number")
    return first["at"] + secondLookSeconds <= now;
  await putRecord(ctx, key, { hash, at: now });
  return false;
}

/** The keys of the transactions that were signed for a link, in the order in which they were signed. */
async function listPlaces(ctx: WalletContext, link: TxLink): Promise<readonly StorageKey[]> {
  const numbered = (await listRecordKeys(ctx, "transaction")).flatMap((place) => {
    const number = numberOf(ctx, link, place);
    return number === null ? [] : [{ place, number }];
  });
  return numbered.toSorted((a, b) => a.number - b.number).map(({ place }) => place);
}

/**
 * The first transaction of a link is stored under the link's key, each later one under that key and a number; null for
 * any other record.
 */
function numberOf(ctx: WalletContext, link: TxLink, place: StorageKey): number | null {
  const first = keyOf(ctx, link);
  if (place === first) return 1;
  const [, digits] = place.startsWith(first)
    ? (/^_([0-9]+)$/.exec(place.slice(first.length)) ?? [])
    : [];
  return digits === undefined ? null : Number(digits);
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

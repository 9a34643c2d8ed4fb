import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes, isRecord, type Action, type Address } from "@svc/protocol";
import {
  addRecord,
  getDroppingDamaged,
  listDroppingDamaged,
  listRecordKeys,
  listRecords,
  recordKey,
  type RecordContext,
  type StoredRecord,
} from "./records.ts";
import type { StorageKey } from "./storage.ts";

/** One answer that this wallet gave. Names of fields, never values. */
export interface HistoryEntry {
  /** Unix seconds. */
  readonly at: number;
  /** Of a link, or a vote as a member of a business. */
  readonly action: Action | "vote";
  /**
   * `declined`: whether or not the other side was told. `sent`: the answer or the transaction was sent, and nobody has
   * confirmed it.
   */
  readonly outcome: "approved" | "declined" | "sent";
  /** Who asked: a verified domain, else a host; absent if the answer was only shown, or given to an app. */
  readonly requester?: string;
  /** Whether a broker vouched for that. */
  readonly isVerified: boolean;
  /** The id of the request; for an order its `referenceKey`. */
  readonly id?: string;
  /** Present for a vote, and for a login for a business. */
  readonly business?: Address;
  readonly purpose?: string;
  /** Fields that were released or proved. */
  readonly fields?: readonly string[];
  /** Names that were asked for and withheld. */
  readonly withheld?: readonly string[];
  readonly txHash?: string;
  /** For a transaction: the SHA-256 of its link as the wallet reads it, by which a second payment is noticed. */
  readonly linkHash?: string;
}

/** An entry as a backup holds it, with the name of its record; earlier versions wrote none. */
export type SavedEntry = HistoryEntry & { readonly name?: string };

const entriesMax = 1000;

/** The key of an entry, and what is stored there once the answer is confirmed. */
export interface Noted {
  readonly place: StorageKey;
  readonly entry: HistoryEntry;
}

/**
 * Adds an entry; beyond 1,000 the oldest are removed. A transaction has one entry, however often it is sent.
 *
 * @param connection of a request that takes one answer: the same answer given again keeps its entry
 */
export async function recordHistory(
  ctx: RecordContext,
  entry: HistoryEntry,
  connection?: string,
): Promise<Noted> {
  const unique = connection === undefined ? undefined : hashOfAnswer(entry, connection);
  const earlier = unique === undefined ? null : await findAnswer(ctx, unique);
  if (earlier !== null) return { place: earlier.place, entry: { ...entry, at: earlier.at } };
  const place = placeOf(ctx, entry, unique);
  await recordAt(ctx, place, entry);
  return { place, entry };
}

/** A key for an entry that is not there yet. */
export function placeOf(ctx: RecordContext, entry: HistoryEntry, given?: string): StorageKey {
  // Sorting by name sorts by time; the rest of the name keeps two entries of the same second apart.
  const unique = entry.txHash ?? given ?? hexOfBytes(ctx.random(8));
  const name = `${String(entry.at).padStart(12, "0")}_${unique.slice(2, 18)}`;
  return recordKey("history", ctx.identity.address, name);
}

function hashOfAnswer(entry: HistoryEntry, connection: string): string {
  const answer = answerOf({ ...entry, at: 0 });
  return hexOfBytes(sha256(bytesOfText(JSON.stringify([connection, answer]))));
}

async function findAnswer(
  ctx: RecordContext,
  unique: string,
): Promise<{ place: StorageKey; at: number } | null> {
  const keys = await listRecordKeys(ctx, "history");
  const place = keys.find((key) => key.endsWith(`_${unique.slice(2, 18)}`));
  const found = place === undefined ? null : await getDroppingDamaged(ctx, place);
  const at = isRecord(found) ? found["at"] : undefined;
  return place === undefined || typeof at !== "number" ? null : { place, at };
}

/** As `recordHistory`, at a key that was drawn before. An existing entry stays. */
export async function recordAt(
  ctx: RecordContext,
  place: StorageKey,
  entry: HistoryEntry,
): Promise<void> {
  await addRecord(ctx, place, entry);
  await dropOldest(ctx);
}

export function savedEntryOf({ key, value }: StoredRecord): SavedEntry {
  return { ...(value as HistoryEntry), name: key.slice(key.indexOf("_") + 1) };
}

/** Restores entries. Existing ones stay, since they may know more by now; those that cannot be read are removed. */
export async function restoreHistory(
  ctx: RecordContext,
  saved: readonly SavedEntry[],
): Promise<void> {
  const present = await listDroppingDamaged(ctx, "history");
  const known = new Set(present.map(({ value }) => answerOf(value as HistoryEntry)));
  for (const { name, ...entry } of saved) {
    if (known.has(answerOf(entry))) continue;
    if (name === undefined) await recordHistory(ctx, entry);
    else await addRecord(ctx, recordKey("history", ctx.identity.address, name), entry);
  }
  await dropOldest(ctx);
}

/** The part of an entry that stays the same when the answer is confirmed. */
function answerOf(entry: HistoryEntry): string {
  return JSON.stringify({ ...entry, outcome: entry.outcome === "declined" ? "declined" : "given" });
}

async function dropOldest(ctx: RecordContext): Promise<void> {
  const keys = await listRecordKeys(ctx, "history");
  for (const key of keys.slice(0, Math.max(0, keys.length - entriesMax)))
    await ctx.storage.remove(key);
}

/** The identity's answers, newest first, as far as they can be read. */
export async function listHistory(ctx: RecordContext): Promise<readonly HistoryEntry[]> {
  const records = await listRecords(ctx, "history");
  return records
    .filter(({ value }) => isRecord(value))
    .map(({ value }) => value as HistoryEntry)
    .toReversed();
}

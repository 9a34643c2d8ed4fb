import { hexOfBytes, isRecord, type Action, type Address } from "@svc/protocol";
import {
  addRecord,
  listRecordKeys,
  listRecords,
  recordKey,
  type RecordContext,
} from "./records.ts";
import type { StorageKey } from "./storage.ts";

/** One answer that this wallet gave. Names of fields, never values. */
export interface HistoryEntry {
  /** Unix seconds. */
  readonly at: number;
  /** Of a link, or a vote as a member of a business. */
  readonly action: Action | "vote";
  /** `sent`: the answer was on its way, and nobody has said that it was taken. */
  readonly outcome: "approved" | "declined" | "sent";
  /** Who asked: a verified domain, else a host; absent where the answer was only shown. */
  readonly requester?: string;
  /** Whether a broker vouched for that. */
  readonly isVerified: boolean;
  /** The id of the request: of an order its `referenceKey`. */
  readonly id?: string;
  /** Of a vote, and of a login for a business. */
  readonly business?: Address;
  readonly purpose?: string;
  /** Fields that were released or proved. */
  readonly fields?: readonly string[];
  /** Names that were asked for and withheld. */
  readonly withheld?: readonly string[];
  readonly txHash?: string;
}

const entriesMax = 1000;

/** Adds an entry; of more than 1,000 the oldest go. @returns where it stands, to be replaced by what is known later */
export async function recordHistory(ctx: RecordContext, entry: HistoryEntry): Promise<StorageKey> {
  // Sorted by name they are sorted by time; what follows keeps two of one second apart.
  const name = `${String(entry.at).padStart(12, "0")}_${hexOfBytes(ctx.random(8)).slice(2)}`;
  const added = recordKey("history", ctx.identity.address, name);
  await addRecord(ctx, added, entry);
  const keys = await listRecordKeys(ctx, "history");
  for (const key of keys.slice(0, Math.max(0, keys.length - entriesMax)))
    await ctx.storage.remove(key);
  return added;
}

/** The identity's answers, newest first, as far as they can be read. */
export async function listHistory(ctx: RecordContext): Promise<readonly HistoryEntry[]> {
  const records = await listRecords(ctx, "history");
  return records
    .filter(({ value }) => isRecord(value))
    .map(({ value }) => value as HistoryEntry)
    .toReversed();
}

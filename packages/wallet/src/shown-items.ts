// What the inbox showed a person, so that a vote is on that and on nothing that came in its place.
import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes, isRecord } from "@svc/protocol";
import type { InboxItem } from "./inbox-item.ts";
import { getRecord, putRecord, recordKey, type RecordContext } from "./records.ts";
import type { StorageKey } from "./storage.ts";

/** An item with the broker that sent it. */
export interface SentItem {
  readonly id: string;
  readonly broker: string;
  readonly item: InboxItem | null;
}

/** Remembers what is shown now, in place of what was shown before. */
export async function rememberShown(ctx: RecordContext, items: readonly SentItem[]): Promise<void> {
  const shown = items.map((each) => [nameOf(each), fingerprintOf(each)]);
  await putRecord(ctx, keyOf(ctx), Object.fromEntries(shown) as object);
}

/** Whether an item asks for something else than the one of its id that was shown last. One never shown does not. */
export async function isOtherThanShown(ctx: RecordContext, sent: SentItem): Promise<boolean> {
  const record = await getRecord(ctx, keyOf(ctx));
  const shown = isRecord(record) ? record[nameOf(sent)] : undefined;
  return shown !== undefined && shown !== fingerprintOf(sent);
}

const nameOf = ({ id, broker }: SentItem): string => `${broker} ${id}`;

/** What moves on while a vote is open, and asks for nothing more: who has voted, and on what state of the business. */
const moving: ReadonlySet<string> = new Set(["epoch", "validUntil", "nonce", "fixedOptional"]);

function fingerprintOf({ item }: SentItem): string {
  const members = Object.entries(item ?? {}).filter(([name]) => !moving.has(name));
  const text = JSON.stringify(members, (_name, value: unknown) =>
    value instanceof Map ? [...value] : value,
  );
  return hexOfBytes(sha256(bytesOfText(text)));
}

function keyOf({ identity }: RecordContext): StorageKey {
  return recordKey("shown", identity.address, "inbox");
}

// What the inbox showed a person, so that a vote is on that and on nothing that came in its place.
import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes, isRecord } from "@svc/protocol";
import type { InboxItem } from "./inbox-item.ts";
import { releasedOptional } from "./question.ts";
import { getMended, getRecord, putRecord, recordKey, type RecordContext } from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import type { StorageKey } from "./storage.ts";

/** An item with the broker that sent it. */
export interface SentItem {
  readonly id: string;
  readonly broker: string;
  readonly item: InboxItem | null;
}

/** What of an item an approval is held against. */
interface Shown {
  readonly fingerprint: string;
  /** The optional fields of a data request that would go. */
  readonly optional: readonly string[];
}

/**
 * Remembers what is shown now, in place of what was shown before.
 *
 * @param known.away brokers that did not answer: what they showed before stays
 */
export async function rememberShown(
  ctx: RecordContext,
  items: readonly SentItem[],
  { away }: { away: readonly string[] },
): Promise<void> {
  const record = away.length === 0 ? null : await getMended(ctx, keyOf(ctx));
  const kept = Object.entries(isRecord(record) ? record : {}).filter(([name]) =>
    away.some((broker) => name.startsWith(`${broker} `)),
  );
  await putRecord(ctx, keyOf(ctx), { ...shownOfAll(items), ...Object.fromEntries(kept) });
}

/**
 * Remembers what nobody looked at, where nothing was shown in its place before: a vote is held against that.
 *
 * @throws {WalletRefusal} as {@link readShown}
 */
export async function rememberUnseen(
  ctx: RecordContext,
  items: readonly SentItem[],
): Promise<void> {
  await putRecord(ctx, keyOf(ctx), { ...shownOfAll(items), ...(await getShown(ctx)) });
}

function shownOfAll(items: readonly SentItem[]): Readonly<Record<string, Shown>> {
  return Object.fromEntries(items.map((each) => [nameOf(each), shownOf(each, [])]));
}

/** What was shown last. */
export interface ShownItems {
  /** Who showed something under this id. */
  brokersOf(id: string): readonly string[];
  /**
   * Whether an approval of an item is of something else, or gives more, than what its broker showed under its id. One
   * never shown by anybody is not.
   *
   * @param without the optional fields that are withheld
   */
  isOther(sent: SentItem, without: readonly string[]): boolean;
}

/** @throws {WalletRefusal} invalid_request where that cannot be read: the inbox shows it anew */
export async function readShown(ctx: RecordContext): Promise<ShownItems> {
  const all = await getShown(ctx);
  const brokersOf = (id: string): readonly string[] =>
    Object.keys(all).flatMap((name) => {
      const [broker, shownId] = name.split(" ");
      return broker !== undefined && shownId === id ? [broker] : [];
    });
  return {
    brokersOf,
    isOther(sent, without) {
      const shown = all[nameOf(sent)];
      return shown === undefined ? brokersOf(sent.id).length > 0 : isOther(shown, sent, without);
    },
  };
}

async function getShown(ctx: RecordContext): Promise<Readonly<Record<string, unknown>>> {
  const record = await getRecord(ctx, keyOf(ctx)).catch((cause: unknown) => {
    if (!(cause instanceof WalletRefusal)) throw cause;
    const fault = "what was shown last cannot be read: look at the inbox again";
    throw new WalletRefusal("invalid_request", fault, { cause });
  });
  return isRecord(record) ? record : {};
}

function isOther(shown: unknown, sent: SentItem, without: readonly string[]): boolean {
  const { fingerprint, optional } = shownOf(sent, without);
  // Earlier versions kept the fingerprint alone, which is enough where no optional field goes.
  const before = isRecord(shown) ? shown : { fingerprint: shown };
  if (before["fingerprint"] !== fingerprint) return true;
  const shownOptional: readonly unknown[] = Array.isArray(before["optional"])
    ? before["optional"]
    : [];
  return optional.some((name) => !shownOptional.includes(name));
}

function shownOf(sent: SentItem, without: readonly string[]): Shown {
  const { item } = sent;
  const optional = item?.kind === "data_request" ? releasedOptional(item, { without }) : [];
  return { fingerprint: fingerprintOf(sent), optional };
}

const nameOf = ({ id, broker }: SentItem): string => `${broker} ${id}`;

/**
 * What moves on while a vote is open: on what state of the business it is, which optional fields it has, and which go.
 * Those are compared by themselves, as fewer may.
 */
const moving: ReadonlySet<string> = new Set([
  "epoch",
  "validUntil",
  "nonce",
  "optional",
  "unavailable",
  "fixedOptional",
]);

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

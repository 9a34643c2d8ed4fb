// What the inbox showed a person, so that a vote is on exactly that, and not on something that has replaced it.
import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes, isRecord } from "@svc/protocol";
import type { InboxItem } from "./inbox-item.ts";
import { releasedOptional } from "./question.ts";
import {
  getDroppingDamaged,
  getRecord,
  putRecord,
  recordKey,
  type RecordContext,
} from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import type { StorageKey } from "./storage.ts";

/** An item with the broker that sent it. */
export interface SentItem {
  readonly id: string;
  readonly broker: string;
  readonly item: InboxItem | null;
}

/** The part of an item that an approval is compared with. */
interface Shown {
  readonly fingerprint: string;
  /** The optional fields of a data request that would be released. */
  readonly optional: readonly string[];
}

/** More than a person looks at while a list is read again. */
const goneMax = 1000;

/**
 * Remembers what is shown now. The latest items that were shown before and are gone from the list are kept: somebody may
 * still be looking at one, and a broker could send something else under its id afterwards.
 *
 * @param known.away brokers that did not answer: all that they showed before stays
 */
export async function rememberShown(
  ctx: RecordContext,
  items: readonly SentItem[],
  { away }: { away: readonly string[] },
): Promise<void> {
  const shown = shownOfAll(items);
  const record = await getDroppingDamaged(ctx, keyOf(ctx));
  const before = Object.entries(isRecord(record) ? record : {});
  const isAway = (name: string): boolean => away.some((broker) => name.startsWith(`${broker} `));
  const ids = new Set(items.map(({ id }) => id));
  const kept = before.filter(([name]) => isAway(name));
  const gone = before.filter(([name]) => !isAway(name) && !ids.has(name.split(" ")[1] ?? ""));
  await putRecord(ctx, keyOf(ctx), {
    ...shown,
    ...Object.fromEntries([...kept, ...gone.slice(0, goneMax)]),
  });
}

/**
 * Remembers items that nobody looked at, so that a vote is compared with them, except where others were shown before.
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
   * Whether an approval of an item would cover something else, or release more, than what its broker showed under its
   * id. False for an item that nobody has ever shown.
   *
   * @param without the optional fields that are withheld
   */
  isOther(sent: SentItem, without: readonly string[]): boolean;
}

/** @throws {WalletRefusal} invalid_request if the record cannot be read: the inbox then has to be shown again */
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
  // Earlier versions stored only the fingerprint, which is enough if no optional field is released.
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
 * What may change while a vote is open: the state of the business that it refers to, which optional fields it has, and
 * which are released. The released fields are compared separately, since fewer are allowed.
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

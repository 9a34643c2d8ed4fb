import { isRecord, shortAddress } from "@svc/protocol";
import { askForList } from "./asking-brokers.ts";
import { chainIdOf } from "./business-wallet.ts";
import type { Concern } from "./concern.ts";
import type { WalletContext } from "./context.ts";
import { sayTime } from "./field-request.ts";
import { readInboxItem, type InboxItem } from "./inbox-item.ts";
import { readPages } from "./pages.ts";
import { questionOf, type Origin } from "./question.ts";
import { rememberShown, rememberUnseen } from "./shown-items.ts";
import { shownText } from "./shown-text.ts";

/** One thing that waits for this identity's vote, as its broker sent it. */
export interface FoundItem {
  readonly id: string;
  readonly kind: string;
  /** Origin of the broker that has it. */
  readonly broker: string;
  /** Null if the broker sent something that this wallet cannot read: it can be rejected, but not approved. */
  readonly item: InboxItem | null;
}

/** The same, as it is shown. */
export interface InboxEntry extends FoundItem {
  /** In plain words, one statement per line. */
  readonly words: readonly string[];
  /** What has to be accepted in addition to the approval. */
  readonly concerns: readonly Concern[];
  /** Why this wallet does not approve it; absent if it may. */
  readonly refusal?: string;
}

/**
 * Items after this many characters of pages (10,000 ordinary questions, or 250 of the longest documents) are listed
 * unread: they can be rejected, and are read once there is less before them. Reading 100 full pages at once would take
 * gigabytes of memory.
 */
const readLengthMax = 16 * 1024 * 1024;

/** A page is about 1 MiB, even if it holds documents of 64 KiB each; all pages are kept until they are shown. */
const list = { path: "/w/inbox?limit=100", bytesMax: 2 * 1024 * 1024, pagesMax: 100 };

/** How the inbox is listed. */
export interface InboxListing {
  /** Nobody looks at this list: a later vote is compared with what was shown before. */
  readonly isUnseen?: true;
}

/**
 * Everything that waits at the brokers on the list; a later vote has to be on an item as it is listed here.
 *
 * @throws {WalletRefusal}
 */
export async function listInbox(
  ctx: WalletContext,
  { isUnseen }: InboxListing,
): Promise<readonly InboxEntry[]> {
  const { answers, missing } = await askForList(ctx, async (broker) => {
    const found = await readInbox(ctx, broker);
    const chainId = found.length === 0 ? 0 : await chainIdOf(ctx, broker);
    return { found, origin: { broker, chainId } };
  });
  const shown = answers.flatMap(({ found }) => found);
  if (isUnseen === true) await rememberUnseen(ctx, shown);
  else await rememberShown(ctx, shown, { away: [...missing.keys()] });
  return answers.flatMap(({ found, origin }) => found.map((each) => entryOf(ctx, each, origin)));
}

/** The entry with this id; null if no such item waits for this identity at this broker. @throws {WalletRefusal} */
export async function findItem(
  ctx: WalletContext,
  broker: string,
  id: string,
): Promise<FoundItem | null> {
  return (await readInbox(ctx, broker)).find((each) => each.id === id) ?? null;
}

/** The items in their order, only the first under each id: a vote names only the id, so it must not be ambiguous. */
async function readInbox(ctx: WalletContext, broker: string): Promise<readonly FoundItem[]> {
  const found = new Map<string, FoundItem>();
  let readLength = 0;
  for await (const { items, length } of readPages(ctx, broker, list)) {
    readLength += length;
    const isRead = readLength <= readLengthMax;
    for (const value of items) {
      const { id, kind } = isRecord(value) ? value : {};
      // The id becomes part of a URL, and of what a refusal signs.
      if (typeof id !== "string" || !/^[\w-]{1,100}$/.test(id) || typeof kind !== "string")
        continue;
      const item = isRead ? readInboxItem(value) : null;
      if (!found.has(id)) found.set(id, { id, kind, broker, item });
    }
  }
  return [...found.values()];
}

function entryOf(ctx: WalletContext, found: FoundItem, origin: Origin): InboxEntry {
  const { item } = found;
  if (item === null) {
    const refusal = "this wallet cannot read what it would approve";
    return { ...found, words: [], concerns: [], refusal };
  }
  const { words, concerns, refusal } = questionOf(item, origin, { without: [] });
  return {
    ...found,
    words: [
      ...words,
      `It can be answered until ${sayTime(item.expiresAt)}, as ${shortAddress(ctx.identity.address)}.`,
      ...(refusal === null ? [] : [`This wallet does not approve it: ${refusal}.`]),
    ].map(shownText),
    concerns,
    ...(refusal === null ? {} : { refusal: shownText(refusal) }),
  };
}

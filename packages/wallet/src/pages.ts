import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { membersOf, type Call } from "./transport.ts";

/** A list at a broker. */
interface PagedList extends Pick<Call, "bytesMax"> {
  /** The path of its first page. */
  readonly path: string;
  /** 50 unless given. */
  readonly pagesMax?: number;
}

/** One page of it. */
interface Page {
  readonly items: readonly unknown[];
  /** The members beside the items. */
  readonly members: Readonly<Record<string, unknown>>;
  /** Of its text, in characters. */
  readonly length: number;
}

/** Items of one page of a list (decisions, section 1, bounds). */
const pageItemsMax = 100;
/**
 * For all pages of a list: a slow broker delays those that are asked after it. The time that the caller spends on a page
 * does not count.
 */
const secondsMax = 60;

/**
 * Reads a list at a broker in a session. A list that never ends is not read for ever.
 *
 * @yields its pages, as the caller asks for more
 * @throws {WalletRefusal} broker_refused if a page is too long or is not a page; unreachable if they take more than a
 * minute
 */
export async function* readPages(
  ctx: Pick<WalletContext, "now" | "sessions">,
  broker: string,
  { path, pagesMax = 50, ...bounds }: PagedList,
): AsyncGenerator<Page, void> {
  let secondsLeft = secondsMax;
  let pagePath = path;
  for (let page = 0; page < pagesMax; page += 1) {
    if (secondsLeft < 0)
      throw new WalletRefusal("unreachable", `${broker} takes too long to send a list`);
    const askedAt = await ctx.now();
    const answer = await ctx.sessions.ask(broker, { path: pagePath, ...bounds });
    secondsLeft -= (await ctx.now()) - askedAt;
    const members = membersOf(answer.text);
    const { items, nextCursor } = members;
    // A cursor that is not well-formed fits in no URL.
    const isEnded = typeof nextCursor !== "string" || nextCursor === "";
    if (!Array.isArray(items) || (!isEnded && !nextCursor.isWellFormed()))
      throw new WalletRefusal("broker_refused", `${broker} sent an invalid list`);
    yield { items: items.slice(0, pageItemsMax), members, length: answer.text?.length ?? 0 };
    if (isEnded) return;
    pagePath = `${path}${path.includes("?") ? "&" : "?"}cursor=${encodeURIComponent(nextCursor)}`;
  }
}

/**
 * Reads the items of such a list.
 *
 * @param list.read returns null for an item to leave out
 * @yields them page by page, as the caller asks for more
 */
export async function* readItems<T>(
  ctx: Pick<WalletContext, "now" | "sessions">,
  broker: string,
  { read, ...list }: PagedList & { readonly read: (item: unknown) => T | null },
): AsyncGenerator<T, void> {
  for await (const { items } of readPages(ctx, broker, list))
    for (const item of items) {
      const found = read(item);
      if (found !== null) yield found;
    }
}

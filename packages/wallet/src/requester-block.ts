import { isRecord } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import type { KeptBusiness } from "./keep.ts";
import { readItems } from "./pages.ts";
import { shownText } from "./shown-text.ts";

/** Which organization a business blocks or unblocks. */
export interface RequesterBlock {
  /** A request of that organization to the business, open or ended. */
  readonly requestId: string;
  readonly isBlocked: boolean;
}

/**
 * Has a business block the organization that made this request, so that it accepts no more requests from it.
 *
 * @throws {WalletRefusal} broker_refused
 */
export async function blockRequester(
  ctx: WalletContext,
  { address, broker }: KeptBusiness,
  { requestId, isBlocked }: RequesterBlock,
): Promise<void> {
  const path = `/w/businesses/${address}/block`;
  await ctx.sessions.ask(broker, { path, body: { requestId, isBlocked } });
}

/** An organization that a business has blocked, as its broker reports it. */
export interface BlockedRequester {
  readonly name: string;
  /** Null if the broker names no verified domain. */
  readonly domain: string | null;
  /** Its last request to the business, by which the block can be undone. */
  readonly requestId: string;
  /** Unix seconds. */
  readonly blockedAt: number;
}

/** The organizations that a business has blocked. @throws {WalletRefusal} broker_refused */
export async function listBlocks(
  ctx: WalletContext,
  { address, broker }: KeptBusiness,
): Promise<readonly BlockedRequester[]> {
  const path = `/w/businesses/${address}/blocks?limit=100`;
  return Array.fromAsync(readItems(ctx, broker, { path, read: blockOf }));
}

function blockOf(value: unknown): BlockedRequester | null {
  if (!isRecord(value) || !isRecord(value["requester"])) return null;
  const { requester, requestId, blockedAt } = value;
  const { name, domain } = requester;
  if (typeof name !== "string" || typeof requestId !== "string" || typeof blockedAt !== "number")
    return null;
  const shownDomain = typeof domain === "string" ? shownText(domain) : null;
  return { name: shownText(name), domain: shownDomain, requestId, blockedAt };
}

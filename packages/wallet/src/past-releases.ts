import { isRecord } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import type { KeptBusiness } from "./keep.ts";
import { readItems } from "./pages.ts";
import { shownText } from "./shown-text.ts";

/** What a business released to somebody, as its broker reports it; without the values. */
export interface PastRelease {
  /** Also the id of the vote that decided it. */
  readonly requestId: string;
  readonly name: string;
  /** Null if the broker names no verified domain. */
  readonly domain: string | null;
  readonly purpose: string;
  readonly fields: readonly string[];
  /** Unix seconds. */
  readonly releasedAt: number;
}

/** A page of 100 releases of 40 fields each, with the longest names and purposes, has 370 kB. */
const bytesMax = 1024 * 1024;

/** What a business released, newest first. @throws {WalletRefusal} broker_refused */
export async function listReleases(
  ctx: WalletContext,
  { address, broker }: KeptBusiness,
): Promise<readonly PastRelease[]> {
  const path = `/w/businesses/${address}/releases?limit=100`;
  return Array.fromAsync(readItems(ctx, broker, { path, bytesMax, read: releaseOf }));
}

function releaseOf(value: unknown): PastRelease | null {
  if (!isRecord(value) || !isRecord(value["requester"])) return null;
  const { requester, requestId, purpose, fields, releasedAt } = value;
  const { name, domain } = requester;
  const texts = [requestId, name, purpose, ...(Array.isArray(fields) ? fields : [null])];
  if (!texts.every((text) => typeof text === "string") || typeof releasedAt !== "number")
    return null;
  const [shownId = "", shownName = "", shownPurpose = "", ...shownFields] = texts.map(shownText);
  return {
    requestId: shownId,
    name: shownName,
    domain: typeof domain === "string" ? shownText(domain) : null,
    purpose: shownPurpose,
    fields: shownFields,
    releasedAt,
  };
}

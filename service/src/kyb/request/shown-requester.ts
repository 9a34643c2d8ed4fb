import { isVerifiedNow } from "../../accounts/index.ts";
import type { KybContext } from "../kyb-context.ts";

/** Who asks a business, as read from the organization and the client domain. */
export interface StoredRequester {
  readonly organizationName: string;
  readonly domain: string;
  /** When the domain was last proved, Unix seconds. */
  readonly provedAt: number | null;
}

/** The requester as members see it: with a domain only while it is verified. */
export function shownRequester(
  ctx: Pick<KybContext, "config" | "clock">,
  requester: StoredRequester,
): { name: string; domain?: string } {
  const { organizationName: name, domain } = requester;
  return { name, ...(isVerifiedNow(ctx, requester) ? { domain } : {}) };
}

import { isVerifiedNow } from "../../accounts/index.ts";
import type { KybContext } from "../kyb-context.ts";

/** The organization and the client domain of a request. */
export interface StoredRequester {
  readonly organizationName: string;
  readonly domain: string;
  /** When the domain was last proved, Unix seconds. */
  readonly provedAt: number | null;
}

/** The requester as members see it, with its domain only while that is verified. */
export function shownRequester(
  ctx: Pick<KybContext, "config" | "clock">,
  requester: StoredRequester,
): { name: string; domain?: string } {
  const { organizationName: name, domain } = requester;
  return { name, ...(isVerifiedNow(ctx, requester) ? { domain } : {}) };
}

import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import type { ApiKey } from "./api-key.ts";
import { isVerifiedNow } from "./client-domains.ts";
import { entitlementsWith } from "./entitlement.ts";
import { findRequesterRow } from "./requester-store.ts";

/** Who makes a request, without the key: a request outlives the call and the key with which it was made. */
export type Requester = Omit<ApiKey, "id" | "limits">;

/** The requester's domain as others see it; empty while it is not verified. */
export function verifiedDomainOf({
  domain,
  verified,
}: Pick<Requester, "domain" | "verified">): string {
  return verified ? domain : "";
}

/**
 * Reads who asks: a client domain as it is now, with what its organization may do.
 *
 * @throws {Error} if there is no such domain; they are never deleted
 */
export async function readRequester(
  ctx: Pick<Ctx, "clock" | "config">,
  db: Queryable,
  clientDomainId: string,
): Promise<Requester> {
  const row = await findRequesterRow(db, clientDomainId);
  if (row === null) throw new Error("client domains are never deleted");
  const { provedAt: _, entitlements, ...own } = row;
  return {
    ...own,
    clientDomainId,
    verified: isVerifiedNow(ctx, row),
    entitlements: entitlementsWith(entitlements),
  };
}

// Checks that data requests and signature requests have in common.
import type { Requester } from "../../accounts/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { hasEndpoint } from "../../webhooks/index.ts";
import { type Business, isGoodStanding } from "../business/business.ts";

/**
 * A business is known once its wallet is deployed, and only in the caller's environment, live or sandbox.
 *
 * @throws {Problem} business_not_found
 */
export function checkKnown(
  business: Business | null,
  { environment }: Pick<Requester, "environment">,
): asserts business is Business {
  if (business?.environment !== environment || business.registeredAt === null)
    throw new Problem("business_not_found");
}

/** Refuses a business that may neither release nor sign. @throws {Problem} business_not_verified */
export function refuseStanding(business: Business): void {
  if (isGoodStanding(business)) return;
  // Says so if it has moved: waiting for it to be verified again would be in vain.
  const hasMoved = business.status === "moved";
  const message = "business_not_verified: the business has moved to another wallet";
  throw new Problem("business_not_verified", hasMoved ? { message } : {});
}

/** Without an endpoint nobody would learn how a request ends. @throws {Problem} no_webhook_endpoint */
export async function refuseUnheard(
  tx: Queryable,
  requester: Pick<Requester, "clientDomainId">,
): Promise<void> {
  if (!(await hasEndpoint(tx, requester.clientDomainId))) throw new Problem("no_webhook_endpoint");
}

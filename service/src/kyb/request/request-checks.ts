// The checks of every request to a business, of either kind, before anything else is examined.
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
  // Nobody has to wait for it to be verified again.
  const hasMoved = business.status === "moved";
  const message = "business_not_verified: the business has moved to another wallet";
  throw new Problem("business_not_verified", hasMoved ? { message } : {});
}

/** @throws {Problem} no_webhook_endpoint, because nobody would learn of the end of a request */
export async function refuseUnheard(
  tx: Queryable,
  requester: Pick<Requester, "clientDomainId">,
): Promise<void> {
  if (!(await hasEndpoint(tx, requester.clientDomainId))) throw new Problem("no_webhook_endpoint");
}

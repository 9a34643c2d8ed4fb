import type { Address } from "@svc/protocol";
import { Problem } from "../../platform/http/problems.ts";
import { requireMember } from "../business/members.ts";
import type { KybContext } from "../kyb-context.ts";
import * as store from "./requester-block-store.ts";

/**
 * Lets a voting member block further requests of an organization to the business, or allow them again, with an audit
 * entry. Open requests are not affected.
 *
 * @param given.requestId any request of the organization to this business, since members know no other id of the
 * organization
 * @throws {Problem} business_not_found, not_a_member, request_not_found
 */
export async function setBlocked(
  ctx: KybContext,
  member: Address,
  given: { business: Address; requestId: string; isBlocked: boolean },
): Promise<void> {
  const { business, requestId, isBlocked } = given;
  await ctx.db.transaction(async (tx) => {
    const { isVoting } = await requireMember(tx, { business, member });
    if (!isVoting) throw new Problem("not_a_member");
    const organizationId = await store.findRequestingOrganization(tx, { id: requestId, business });
    if (organizationId === null) throw new Problem("request_not_found");
    const pair = { organizationId, business };
    if (isBlocked) await store.insertBlock(tx, pair, ctx.clock.now());
    else await store.deleteBlock(tx, pair);
    const action = isBlocked ? "business.block" : "business.unblock";
    const details = { organizationId };
    await ctx.audit.record(tx, { actor: member, action, subject: business, details });
  });
}

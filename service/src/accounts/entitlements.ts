import type { Ctx } from "../platform/context.ts";
import { parseUuid } from "../platform/ids.ts";
import { Problem } from "../platform/http/problems.ts";
import { type Entitlement, entitlementsWith, parseGranted } from "./entitlement.ts";
import * as store from "./entitlement-store.ts";
import { findOrganization, lockOrganization } from "./organization-store.ts";

/**
 * Grants an entitlement to an organization, or withdraws it, with immediate effect on its keys. Repeating it changes
 * nothing.
 *
 * @returns all entitlements that the organization has now
 * @throws {Problem} invalid_request, organization_not_found
 */
export async function setEntitlement(
  ctx: Ctx,
  given: { organizationId: string; entitlement: string; isGranted: boolean },
  actor: string,
): Promise<Entitlement[]> {
  const entitlement = parseGranted(given.entitlement);
  return ctx.db.transaction(async (tx) => {
    const organizationId = parseUuid(given.organizationId);
    if (organizationId === null || !(await lockOrganization(tx, organizationId)))
      throw new Problem("organization_not_found");
    const change = { organizationId, entitlement, now: ctx.clock.now() };
    const hasChanged = given.isGranted
      ? await store.insertEntitlement(tx, change)
      : await store.deleteEntitlement(tx, change);
    if (hasChanged) {
      await store.announceOrganization(tx, organizationId);
      const action = given.isGranted ? "entitlement.grant" : "entitlement.withdraw";
      await ctx.audit.record(tx, {
        actor,
        action,
        subject: organizationId,
        details: { entitlement },
      });
    }
    const granted = await store.listGranted(tx, organizationId);
    return [...entitlementsWith(granted.map((each) => each.entitlement))];
  });
}

/** What an organization may do, `kyb:read` included. @throws {Problem} organization_not_found */
export async function listEntitlements(
  ctx: Pick<Ctx, "db">,
  organization: string,
): Promise<Entitlement[]> {
  const id = parseUuid(organization);
  if (id === null || (await findOrganization(ctx.db, id)) === null)
    throw new Problem("organization_not_found");
  const granted = await store.listGranted(ctx.db, id);
  return [...entitlementsWith(granted.map((each) => each.entitlement))];
}

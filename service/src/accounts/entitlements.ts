import type { Ctx } from "../platform/context.ts";
import { type Entitlement, entitlementsWith, parseGranted } from "./entitlement.ts";
import * as store from "./entitlement-store.ts";
import { getOrganization, lockOrganization } from "./organizations.ts";

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
    const organizationId = await lockOrganization(tx, given.organizationId);
    const change = { organizationId, entitlement, now: ctx.clock.now() };
    const hasChanged = given.isGranted
      ? await store.insertEntitlement(tx, change)
      : await store.deleteEntitlement(tx, change);
    if (hasChanged) {
      await store.announceApiKeys(tx, organizationId);
      const action = given.isGranted ? "entitlement.grant" : "entitlement.withdraw";
      await ctx.audit.record(tx, {
        actor,
        action,
        subject: organizationId,
        details: { entitlement },
      });
    }
    return [...entitlementsWith(await store.listGranted(tx, organizationId))];
  });
}

/** The entitlements of an organization, `kyb:read` included. @throws {Problem} organization_not_found */
export async function listEntitlements(ctx: Ctx, organization: string): Promise<Entitlement[]> {
  const { id } = await getOrganization(ctx, organization);
  return [...entitlementsWith(await store.listGranted(ctx.db, id))];
}

// Rate limits of one organization in place of the settings (decisions section 8, Rate limits).
import type { Ctx } from "../platform/context.ts";
import { parseUuid } from "../platform/ids.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import * as store from "./organization-limits-store.ts";

/** Null if the setting applies. */
export interface OrganizationLimits {
  /** Reads per second of each API key. */
  readonly readsPerSecond: number | null;
  readonly createsPerSecond: number | null;
  /** Logins started per minute at each client. */
  readonly loginsPerClientMinute: number | null;
}

/** The greatest value that the settings allow. */
const most: Readonly<Record<keyof OrganizationLimits, number>> = {
  readsPerSecond: 100_000,
  createsPerSecond: 100_000,
  loginsPerClientMinute: 1_000_000,
};

/**
 * Changes limits of an organization, with immediate effect on its keys and clients in every process.
 *
 * @param given.changes null to go back to the setting; a limit that is absent stays
 * @returns all limits of its own that it has now
 * @throws {Problem} invalid_request, organization_not_found
 */
export async function setLimits(
  ctx: Pick<Ctx, "db" | "audit">,
  given: { organizationId: string; changes: Partial<OrganizationLimits> },
  actor: string,
): Promise<OrganizationLimits> {
  const { changes } = given;
  for (const name of ["readsPerSecond", "createsPerSecond", "loginsPerClientMinute"] as const)
    checkLimit(name, changes[name] ?? null);
  return ctx.db.transaction(async (tx) => {
    const id = parseUuid(given.organizationId);
    const known = id === null ? null : await store.lockLimits(tx, id);
    if (id === null || known === null) throw new Problem("organization_not_found");
    if (Object.keys(changes).length === 0) return known;
    const limits = { ...known, ...changes };
    await store.saveLimits(tx, id, limits);
    await ctx.audit.record(tx, {
      actor,
      action: "organization.limits",
      subject: id,
      details: { ...limits },
    });
    return limits;
  });
}

function checkLimit(name: keyof OrganizationLimits, limit: number | null): void {
  if (limit === null) return;
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > most[name])
    throw invalidRequest(`${name} must be 1 to ${most[name]}`);
}

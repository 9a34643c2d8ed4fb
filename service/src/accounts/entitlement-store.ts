import { type Queryable, sql } from "../platform/database/db.ts";
import type { GrantedEntitlement } from "./entitlement.ts";

/** @returns false if the organization had it before */
export async function insertEntitlement(
  tx: Queryable,
  given: { organizationId: string; entitlement: GrantedEntitlement; now: number },
): Promise<boolean> {
  const rows = await tx.query(
    sql`insert into organization_entitlement (organization_id, entitlement, granted_at)
      values (${given.organizationId}, ${given.entitlement}, ${given.now})
      on conflict do nothing returning 1 as granted`,
  );
  return rows.length === 1;
}

/** @returns false if the organization did not have it */
export async function deleteEntitlement(
  tx: Queryable,
  given: { organizationId: string; entitlement: GrantedEntitlement },
): Promise<boolean> {
  const rows = await tx.query(
    sql`delete from organization_entitlement
      where organization_id = ${given.organizationId} and entitlement = ${given.entitlement}
      returning 1 as withdrawn`,
  );
  return rows.length === 1;
}

export async function listGranted(
  db: Queryable,
  organizationId: string,
): Promise<GrantedEntitlement[]> {
  const rows = await db.query<{ entitlement: GrantedEntitlement }>(
    sql`select entitlement from organization_entitlement where organization_id = ${organizationId} order by entitlement`,
  );
  return rows.map(({ entitlement }) => entitlement);
}

/** Makes every process read the organization's API keys again, which carry its entitlements. */
export async function announceApiKeys(tx: Queryable, organizationId: string): Promise<void> {
  await tx.query(
    sql`select pg_notify('api-key', id) from api_key
      where organization_id = ${organizationId} and revoked_at is null`,
  );
}

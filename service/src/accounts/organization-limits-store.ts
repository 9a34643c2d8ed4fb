import { type Queryable, sql } from "../platform/database/db.ts";
import type { OrganizationLimits } from "./organization-limits.ts";

/** Reads the limits and locks them for this transaction. Null if there is no such organization. */
export async function lockLimits(tx: Queryable, id: string): Promise<OrganizationLimits | null> {
  const [row] = await tx.query<OrganizationLimits>(
    sql`select reads_per_second as "readsPerSecond", creates_per_second as "createsPerSecond",
        logins_per_client_minute as "loginsPerClientMinute"
      from organization where id = ${id} for update`,
  );
  return row ?? null;
}

/** Writes the limits, and has every process read the keys and clients of the organization again. */
export async function saveLimits(
  tx: Queryable,
  id: string,
  limits: OrganizationLimits,
): Promise<void> {
  await tx.query(
    sql`update organization set reads_per_second = ${limits.readsPerSecond},
        creates_per_second = ${limits.createsPerSecond}, logins_per_client_minute = ${limits.loginsPerClientMinute}
      where id = ${id}`,
  );
  await tx.query(
    sql`select pg_notify('api-key', id) from api_key where organization_id = ${id} and revoked_at is null
      union all
      select pg_notify('client', oauth_client.id)
      from oauth_client join client_domain on client_domain.id = client_domain_id
      where organization_id = ${id} and disabled_at is null`,
  );
}

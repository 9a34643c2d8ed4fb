import { type Queryable, sql } from "../platform/database/db.ts";
import type { Environment } from "./client-domain.ts";

export interface RequesterRow {
  readonly organizationId: string;
  readonly environment: Environment;
  readonly domain: string;
  readonly provedAt: number | null;
  readonly entitlements: readonly string[];
}

export async function findRequesterRow(
  db: Queryable,
  clientDomainId: string,
): Promise<RequesterRow | null> {
  const [row] = await db.query<RequesterRow>(
    sql`select organization_id as "organizationId", environment, domain, proved_at as "provedAt",
        array(select entitlement from organization_entitlement
          where organization_entitlement.organization_id = client_domain.organization_id) as entitlements
      from client_domain where id = ${clientDomainId}`,
  );
  return row ?? null;
}

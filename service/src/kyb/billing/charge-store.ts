import type { Address } from "@svc/protocol";
import type { Purse } from "../../accounts/index.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { lastUlid } from "../../platform/ids.ts";
import type { Charge } from "./billing.ts";

/** Charges of all client domains of an organization, newest first. @param page.before lists charges before this id */
export async function listCharges(
  db: Queryable,
  { organizationId, environment }: Purse,
  page: { before: string | null; limit: number },
): Promise<Charge[]> {
  return db.query<Charge>(
    sql`select id, request_id as "requestId", business, amount_rappen as "amountRappen", lines, created_at as at
      from kyb_charge
      where organization_id = ${organizationId} and environment = ${environment} and id < ${page.before ?? lastUlid}
      order by id desc limit ${page.limit}`,
  );
}

/** Whether the business has ever released something to the organization. */
export async function hasReleased(
  db: Queryable,
  of: { organizationId: string; business: Address },
): Promise<boolean> {
  const rows = await db.query(
    sql`select 1 as released from kyb_charge
      where organization_id = ${of.organizationId} and business = ${of.business} limit 1`,
  );
  return rows.length === 1;
}

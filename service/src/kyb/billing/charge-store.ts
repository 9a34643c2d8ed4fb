import type { Address } from "@svc/protocol";
import type { Purse } from "../../accounts/index.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { lastUlid } from "../../platform/ids.ts";
import type { Charge } from "./billing.ts";
import type { PriceLine } from "./pricing.ts";

interface ChargeRow {
  id: string;
  request_id: string;
  business: Address;
  amount_rappen: number;
  lines: PriceLine[];
  created_at: number;
}

/** Newest first. @param page.before lists charges before this id */
export async function listCharges(
  db: Queryable,
  { organizationId, environment }: Purse,
  page: { before: string | null; limit: number },
): Promise<Charge[]> {
  const rows = await db.query<ChargeRow>(
    sql`select id, request_id, business, amount_rappen, lines, created_at from kyb_charge
      where organization_id = ${organizationId} and environment = ${environment} and id < ${page.before ?? lastUlid}
      order by id desc limit ${page.limit}`,
  );
  return rows.map((row) => ({
    id: row.id,
    requestId: row.request_id,
    business: row.business,
    amountRappen: row.amount_rappen,
    lines: row.lines,
    at: row.created_at,
  }));
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

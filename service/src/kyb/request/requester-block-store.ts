import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { lastUuid } from "../../platform/ids.ts";
import type { Pair } from "./request-limits-store.ts";
import type { StoredRequester } from "./shown-requester.ts";

/** The organization that made a request to this business, of either kind. */
export async function findRequestingOrganization(
  db: Queryable,
  request: { id: string; business: Address },
): Promise<string | null> {
  const [row] = await db.query<{ organization_id: string }>(
    sql`select organization_id from data_request where id = ${request.id} and business = ${request.business}
      union all
      select organization_id from signature_request where id = ${request.id} and business = ${request.business}`,
  );
  return row?.organization_id ?? null;
}

export async function insertBlock(tx: Queryable, pair: Pair, now: number): Promise<void> {
  await tx.query(
    sql`insert into business_block (business, organization_id, created_at)
      values (${pair.business}, ${pair.organizationId}, ${now}) on conflict do nothing`,
  );
}

export async function deleteBlock(tx: Queryable, pair: Pair): Promise<void> {
  await tx.query(
    sql`delete from business_block where business = ${pair.business} and organization_id = ${pair.organizationId}`,
  );
}

/** An organization that a business has blocked. */
export interface Block extends StoredRequester {
  /** The id of the organization. */
  readonly id: string;
  /** The id of its last request to the business. */
  readonly requestId: string;
  readonly blockedAt: number;
}

/** By organization, the newest organization first. @param page.before lists blocks before this organization */
export async function listBlocks(
  db: Queryable,
  business: Address,
  page: { before: string | null; limit: number },
): Promise<Block[]> {
  return db.query<Block>(
    sql`select organization.id, organization.name as "organizationName", domain, proved_at as "provedAt",
        last.id as "requestId", business_block.created_at as "blockedAt"
      from business_block
        join organization on organization.id = business_block.organization_id
        cross join lateral (
          select id, client_domain_id from data_request
          where organization_id = organization.id and data_request.business = business_block.business
          union all
          select id, client_domain_id from signature_request
          where organization_id = organization.id and signature_request.business = business_block.business
          order by id desc limit 1) as last
        join client_domain on client_domain.id = last.client_domain_id
      where business_block.business = ${business} and organization.id < ${page.before ?? lastUuid}
      order by organization.id desc limit ${page.limit}`,
  );
}

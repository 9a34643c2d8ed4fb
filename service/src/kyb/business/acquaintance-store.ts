// Which organizations a business is acquainted with: those that it logged in to, released to or signed for.
import type { Address } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";

/** Records that the business logged in to an organization, released to it, or signed for it. */
export async function noteBusinessAcquaintance(
  tx: Queryable,
  met: { business: Address; organizationId: string; now: number },
): Promise<void> {
  await tx.query(
    sql`insert into business_acquaintance (business, organization_id, created_at)
      values (${met.business}, ${met.organizationId}, ${met.now}) on conflict do nothing`,
  );
}

/** Whether the business is acquainted with the organization by exactly this wallet. */
export async function isBusinessAcquainted(
  db: Queryable,
  met: { business: Address; organizationId: string },
): Promise<boolean> {
  const rows = await db.query(
    sql`select 1 as known from business_acquaintance
      where business = ${met.business} and organization_id = ${met.organizationId}`,
  );
  return rows.length === 1;
}

/**
 * Whether the business is acquainted with the organization by this wallet or by one that it left for this one, as in
 * {@link listAcquaintedDomains}.
 */
export async function isAcquaintedAlong(
  db: Queryable,
  of: { business: Address; environment: Environment; organizationId: string },
): Promise<boolean> {
  const rows = await db.query(
    sql`with recursive wallet as (
        select ${of.business}::text as address
        union select business.address from business join wallet on business.successor = wallet.address
          where business.status = 'moved' and business.environment = ${of.environment})
      select from wallet join business_acquaintance on business_acquaintance.business = wallet.address
      where organization_id = ${of.organizationId} limit 1`,
  );
  return rows.length === 1;
}

/**
 * The client domains in one environment of all organizations with which the business is acquainted by this wallet or by
 * one that it left for this one.
 */
export async function listAcquaintedDomains(
  db: Queryable,
  of: { business: Address; environment: Environment },
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    sql`with recursive wallet as (
        select ${of.business}::text as address
        union select business.address from business join wallet on business.successor = wallet.address
          where business.status = 'moved' and business.environment = ${of.environment})
      select distinct client_domain.id from wallet
        join business_acquaintance on business_acquaintance.business = wallet.address
        join client_domain using (organization_id)
      where environment = ${of.environment} order by client_domain.id`,
  );
  return rows.map(({ id }) => id);
}

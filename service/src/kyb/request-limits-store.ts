import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/db.ts";

/** One organization and one business. */
export interface Pair {
  readonly organizationId: string;
  readonly business: Address;
}

/** Requests of the organization to the business, of both kinds. */
export async function countRequests(
  tx: Queryable,
  { organizationId, business }: Pair,
  since: number,
): Promise<{ open: number; recent: number; isBlocked: boolean }> {
  // Requests of one pair are counted and made one after the other.
  await tx.query(
    sql`select pg_advisory_xact_lock(hashtextextended(${`${organizationId} ${business}`}, 7))`,
  );
  const [row] = await tx.query<{ open: number; recent: number; isBlocked: boolean }>(
    sql`select
        (select count(*) from data_request where organization_id = ${organizationId} and business = ${business}
          and status = 'pending_approval')
        + (select count(*) from signature_request where organization_id = ${organizationId} and business = ${business}
          and status = 'pending_approval') as open,
        (select count(*) from data_request where organization_id = ${organizationId} and business = ${business}
          and created_at > ${since})
        + (select count(*) from signature_request where organization_id = ${organizationId} and business = ${business}
          and created_at > ${since}) as recent,
        exists (select 1 from business_block
          where organization_id = ${organizationId} and business = ${business}) as "isBlocked"`,
  );
  return row ?? { open: 0, recent: 0, isBlocked: false };
}

/** The organization that a request to this business is of, of either kind and however old. */
export async function findAsker(
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

import type { Address } from "@svc/protocol";
import { lockSeeds } from "../../platform/database/advisory-locks.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";

/** One organization and one business. */
export interface Pair {
  readonly organizationId: string;
  readonly business: Address;
}

/** The requests of an organization to a business, of both kinds together. */
interface Asked {
  readonly open: number;
  /** When the first of the last `count` requests was made; null if there were fewer. */
  readonly firstOfLastAt: number | null;
  readonly isBlocked: boolean;
}

/**
 * Counts the requests of one pair. Takes a lock until the end of the transaction, so that concurrent requests of the
 * pair take turns and cannot exceed the limit together.
 *
 * Open data requests are found by client domain, which has one at most per business, so that ended ones are not read.
 */
export async function countRequests(
  tx: Queryable,
  { organizationId, business }: Pair,
  last: { since: number; count: number },
): Promise<Asked> {
  await tx.query(
    sql`select pg_advisory_xact_lock(hashtextextended(${`${organizationId} ${business}`}, ${lockSeeds.requestsOfPair}))`,
  );
  const [row] = await tx.query<Asked>(
    sql`select
        (select count(*) from data_request join client_domain on client_domain.id = client_domain_id
          where client_domain.organization_id = ${organizationId} and business = ${business}
            and status = 'pending_approval')
        + (select count(*) from signature_request where organization_id = ${organizationId} and business = ${business}
          and status = 'pending_approval') as open,
        (select created_at from (
          select created_at from data_request where organization_id = ${organizationId} and business = ${business}
            and created_at > ${last.since}
          union all
          select created_at from signature_request where organization_id = ${organizationId} and business = ${business}
            and created_at > ${last.since}
        ) as recent order by created_at desc limit 1 offset ${last.count - 1}::int) as "firstOfLastAt",
        exists (select 1 from business_block
          where organization_id = ${organizationId} and business = ${business}) as "isBlocked"`,
  );
  return row ?? { open: 0, firstOfLastAt: null, isBlocked: false };
}

/** The ids of the requests that {@link countRequests} counts as open. */
export async function findOpen(
  tx: Queryable,
  { organizationId, business }: Pair,
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select data_request.id from data_request join client_domain on client_domain.id = client_domain_id
      where client_domain.organization_id = ${organizationId} and business = ${business}
        and status = 'pending_approval'
      union all
      select id from signature_request where organization_id = ${organizationId} and business = ${business}
        and status = 'pending_approval'`,
  );
  return rows.map(({ id }) => id);
}

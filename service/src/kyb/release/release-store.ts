import type { Address, BusinessFieldName, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { lastUlid } from "../../platform/ids.ts";
import type { DataRequest } from "../request/data-request.ts";
import type { StoredRequester } from "../request/shown-requester.ts";
import type { PriceLine } from "../billing/pricing.ts";

/** One released field, without its value. */
export interface ReleasedLeaf {
  readonly name: BusinessFieldName;
  /** The person it is about; empty for the business itself. */
  readonly subject: string;
  readonly leaf: Hex32;
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const pending = "pending_approval";

/**
 * Ends an open request with its release and its charge, all in one statement.
 *
 * @returns false if it has ended already
 */
export async function insertRelease(
  tx: Queryable,
  request: DataRequest,
  made: {
    readonly attestationSealed: Buffer;
    readonly leaves: readonly ReleasedLeaf[];
    readonly now: number;
    readonly expiresAt: number;
    readonly chargeId: string;
    readonly amountRappen: number;
    readonly lines: readonly PriceLine[];
  },
): Promise<boolean> {
  const { now } = made;
  const rows = await tx.query(
    sql`with ended as (
        update data_request set status = 'released', ended_at = ${now}, sequence = sequence + 1
        where id = ${request.id} and status = ${pending} and sequence = ${request.sequence}
        returning id, organization_id, environment, client_domain_id, business
      ), released as (
        insert into data_release (request_id, attestation_sealed, leaves, released_at, expires_at)
        select id, ${made.attestationSealed}::bytea, ${JSON.stringify(made.leaves)}::jsonb, ${now}::bigint,
          ${made.expiresAt}::bigint
        from ended
      ), charged as (
        insert into kyb_charge (id, organization_id, environment, client_domain_id, request_id, business, amount_rappen,
          lines, created_at)
        select ${made.chargeId}::text, organization_id, environment, client_domain_id, id, business,
          ${made.amountRappen}::bigint, ${JSON.stringify(made.lines)}::jsonb, ${now}::bigint
        from ended
      )
      select 1 as ended from ended`,
  );
  return rows.length === 1;
}

export interface ReleaseRow {
  /** Null once it has been purged. */
  readonly attestationSealed: Buffer | null;
  readonly leaves: readonly ReleasedLeaf[] | null;
  readonly releasedAt: number;
  readonly expiresAt: number;
}

export async function findRelease(db: Queryable, requestId: string): Promise<ReleaseRow | null> {
  const [row] = await db.query<ReleaseRow>(
    sql`select attestation_sealed as "attestationSealed", leaves, released_at as "releasedAt", expires_at as "expiresAt"
      from data_release where request_id = ${requestId}`,
  );
  return row ?? null;
}

/** A release of a business, without its values. */
export interface PastRelease extends StoredRequester {
  /** The id of its charge. */
  readonly id: string;
  readonly requestId: string;
  readonly purpose: string;
  readonly fields: readonly BusinessFieldName[];
  readonly releasedAt: number;
}

/** Newest first, including purged releases, whose charge stays. @param page.before lists releases before this charge */
export async function listReleasesOf(
  db: Queryable,
  business: Address,
  page: { before: string | null; limit: number },
): Promise<PastRelease[]> {
  return db.query<PastRelease>(
    sql`select kyb_charge.id, request_id as "requestId", purpose, jsonb_path_query_array(lines, '$[*].field') as fields,
        kyb_charge.created_at as "releasedAt", organization.name as "organizationName", domain, proved_at as "provedAt"
      from kyb_charge
        join data_request on data_request.id = request_id
        join organization on organization.id = kyb_charge.organization_id
        join client_domain on client_domain.id = kyb_charge.client_domain_id
      where kyb_charge.business = ${business} and kyb_charge.id < ${page.before ?? lastUlid}
      order by kyb_charge.id desc limit ${page.limit}`,
  );
}

/** Purges the contents of expired releases; the record that there was one stays. @returns how many were purged */
export async function purgeReleases(db: Queryable, now: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    update data_release set attestation_sealed = null, leaves = null where request_id = any(array(
      select request_id from data_release where attestation_sealed is not null and expires_at <= ${now} order by expires_at limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}

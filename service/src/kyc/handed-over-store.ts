import type { Address, FieldName, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";

/** Fields of an order that were handed over in this attempt or an earlier one and no longer hold. */
export interface InvalidatedFields {
  readonly orderId: string;
  readonly attempt: number;
  readonly fields: readonly string[];
}

/**
 * For each order, the newest attempt that handed over one of these leaves, and the fields that no longer hold. Per
 * field only the last hand-over up to that attempt counts: a value that a later attempt replaced is not listed, one
 * that later attempts did not include is. Sorted by order.
 */
export async function listInvalidated(
  tx: Queryable,
  leaves: readonly Hex32[],
): Promise<InvalidatedFields[]> {
  const given = leaves.map(bufferOfHex);
  return tx.query<InvalidatedFields>(
    sql`select order_id as "orderId", attempt, array(
        select field from (
          select distinct on (field) field, leaf
          from kyc_consent as consent cross join unnest(fields, leaves) as released (field, leaf)
          where consent.order_id = newest.order_id and consent.attempt <= newest.attempt and delivered_at is not null
          order by field, consent.attempt desc
        ) as last
        where leaf = any(${given}::bytea[]) order by field
      ) as fields
      from (
        select order_id, max(attempt) as attempt from kyc_consent
        where leaves && ${given}::bytea[] and delivered_at is not null group by order_id
      ) as newest
      order by order_id`,
  );
}

/** The leaves of these fields that the organization was given, without duplicates, still valid or not. */
export async function listHandedOver(
  db: Queryable,
  organizationId: string,
  { user, fields }: { user: Address; fields: readonly FieldName[] },
): Promise<Hex32[]> {
  const rows = await db.query<{ leaf: Hex32 }>(
    sql`select distinct '0x' || encode(released.leaf, 'hex') as leaf
      from kyc_order
        join kyc_consent on kyc_consent.order_id = kyc_order.id
        cross join unnest(kyc_consent.fields, leaves) as released (field, leaf)
      where user_address = ${user} and organization_id = ${organizationId} and delivered_at is not null
        and released.field = any(${fields}::text[])`,
  );
  return rows.map(({ leaf }) => leaf);
}

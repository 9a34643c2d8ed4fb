import type { Address, FieldName, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/db.ts";

/** A delivered attempt with fields that no longer hold. */
export interface InvalidDelivery {
  readonly orderId: string;
  readonly attempt: number;
  readonly fields: readonly string[];
}

/** For each order the newest attempt that was handed over with one of these leaves, by order. */
export async function listDeliveries(
  tx: Queryable,
  leaves: readonly Hex32[],
): Promise<InvalidDelivery[]> {
  const given = leaves.map((leaf) => `\\x${leaf.slice(2)}`);
  const rows = await tx.query<{ order_id: string; attempt: number; invalid: string[] }>(
    sql`select distinct on (order_id) order_id, attempt, array(
        select field from unnest(fields, leaves) as released (field, leaf)
        where leaf = any(${given}::bytea[]) order by field
      ) as invalid
      from kyc_consent
      where leaves && ${given}::bytea[] and delivered_at is not null
      order by order_id, attempt desc`,
  );
  return rows.map((row) => ({
    orderId: row.order_id,
    attempt: row.attempt,
    fields: row.invalid,
  }));
}

/** The leaves of these fields of a user that an organization was given, each once. */
export async function listDeliveredLeaves(
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

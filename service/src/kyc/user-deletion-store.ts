import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import type { Status } from "./order.ts";

interface HeldOrder {
  readonly id: string;
  readonly attempt: number;
  readonly status: Status;
}

/** Locks the orders by id, as every statement that locks several does, so that none deadlock. */
export async function lockOrdersOf(tx: Queryable, user: Address): Promise<HeldOrder[]> {
  return tx.query<HeldOrder>(
    sql`select id, attempt, status from kyc_order where user_address = ${user} order by id for update`,
  );
}

/**
 * Deletes orders with everything that belongs to them. Batches stay: they hold only hashes, and receipts of other
 * orders need their leaves.
 */
export async function deleteOrders(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(sql`delete from kyc_payload where order_id = any(${ids}::uuid[])`);
  await tx.query(sql`delete from kyc_token where order_id = any(${ids}::uuid[])`);
  await tx.query(sql`delete from kyc_consent where order_id = any(${ids}::uuid[])`);
  await tx.query(sql`delete from kyc_order_status where order_id = any(${ids}::uuid[])`);
  await tx.query(sql`delete from kyc_order where id = any(${ids}::uuid[])`);
}

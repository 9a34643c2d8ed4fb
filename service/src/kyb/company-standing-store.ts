import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/db.ts";

/** Since when the business is vouched for; it stays as it is where it was already. */
export async function noteVerified(tx: Queryable, business: Address, now: number): Promise<void> {
  await tx.query(
    sql`update business set verified_at = ${now} where address = ${business} and verified_at is null`,
  );
}

/** False where it was not vouched for anyway. */
export async function noteUnverified(tx: Queryable, business: Address): Promise<boolean> {
  const rows = await tx.query(
    sql`update business set verified_at = null where address = ${business} and verified_at is not null
      returning 1 as changed`,
  );
  return rows.length === 1;
}

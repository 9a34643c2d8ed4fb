import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";

/** Whether the user has ever logged in to the organization, or shared fields with it (decisions section 4). */
export async function isAcquainted(
  db: Queryable,
  organizationId: string,
  user: Address,
): Promise<boolean> {
  const rows = await db.query(
    sql`select 1 as known from organization_user where organization_id = ${organizationId} and user_address = ${user}`,
  );
  return rows.length === 1;
}

/** Records the acquaintance, so that {@link isAcquainted} is true from now on. */
export async function acquaint(
  tx: Queryable,
  { organizationId, user, now }: { organizationId: string; user: Address; now: number },
): Promise<void> {
  await tx.query(sql`select acquaint(${organizationId}, ${user}, ${now})`);
}

export async function forgetAcquaintances(tx: Queryable, user: Address): Promise<void> {
  await tx.query(sql`delete from organization_user where user_address = ${user}`);
}

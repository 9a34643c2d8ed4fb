import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/db.ts";

/** Whether the user logged in to the organization, or shared fields with it, once (decisions section 4). */
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

/** Remembers that users shared fields with organizations; a login remembers it in its own statement. */
export async function noteAcquaintances(
  tx: Queryable,
  met: readonly { readonly organizationId: string; readonly user: Address }[],
  now: number,
): Promise<void> {
  await tx.query(
    sql`insert into organization_user (organization_id, user_address, created_at)
      select distinct organization_id, user_address, ${now}::bigint
      from unnest(${met.map((each) => each.organizationId)}::uuid[], ${met.map((each) => each.user)}::text[])
        as met (organization_id, user_address)
      order by 1, 2
      on conflict do nothing`,
  );
}

export async function forgetAcquaintances(tx: Queryable, user: Address): Promise<void> {
  await tx.query(sql`delete from organization_user where user_address = ${user}`);
}

import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";

/** All that is stored about a user's ties to organizations. Times are Unix seconds. */
export interface TieReport {
  /** Organizations that the user logged in to or shared fields with; those known longest first. */
  readonly knownTo: readonly { readonly organizationId: string; readonly createdAt: number }[];
  /** Organizations that the user works for. */
  readonly roles: readonly {
    readonly organizationId: string;
    readonly role: string;
    readonly createdAt: number;
  }[];
}

/** @param limit the most entries of each list */
export async function reportTies(db: Queryable, user: Address, limit: number): Promise<TieReport> {
  return {
    knownTo: await db.query(sql`
      select organization_id as "organizationId", created_at as "createdAt" from organization_user
      where user_address = ${user} order by created_at, organization_id limit ${limit}`),
    roles: await db.query(sql`
      select organization_id as "organizationId", role, created_at as "createdAt" from organization_member
      where user_address = ${user} order by created_at, organization_id limit ${limit}`),
  };
}

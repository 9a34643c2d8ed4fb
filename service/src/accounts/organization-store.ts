import { type Queryable, sql } from "../platform/database/db.ts";
import { firstUuid } from "../platform/ids.ts";
import type { Organization, OrganizationMember } from "./organization.ts";

export async function insertOrganization(tx: Queryable, organization: Organization): Promise<void> {
  await tx.query(
    sql`insert into organization (id, name, created_at)
      values (${organization.id}, ${organization.name}, ${organization.createdAt})`,
  );
}

export async function findOrganization(db: Queryable, id: string): Promise<Organization | null> {
  const [organization] = await db.query<Organization>(
    sql`select id, name, created_at as "createdAt" from organization where id = ${id}`,
  );
  return organization ?? null;
}

/** @returns whether it exists */
export async function lockOrganization(tx: Queryable, id: string): Promise<boolean> {
  const rows = await tx.query(sql`select 1 from organization where id = ${id} for update`);
  return rows.length > 0;
}

/** In the order of creation: the ids are UUIDv7. */
export async function listOrganizations(
  db: Queryable,
  page: { after: string | null; limit: number },
): Promise<Organization[]> {
  return db.query<Organization>(
    sql`select id, name, created_at as "createdAt" from organization
      where id > ${page.after ?? firstUuid}
      order by id limit ${page.limit}`,
  );
}

export async function listMembers(
  db: Queryable,
  organizationId: string,
): Promise<OrganizationMember[]> {
  return db.query<OrganizationMember>(
    sql`select user_address as "user", role, created_at as "createdAt" from organization_member
      where organization_id = ${organizationId} order by created_at, user_address`,
  );
}

export async function upsertMember(
  tx: Queryable,
  organizationId: string,
  member: OrganizationMember,
): Promise<void> {
  await tx.query(
    sql`insert into organization_member (organization_id, user_address, role, created_at)
      values (${organizationId}, ${member.user}, ${member.role}, ${member.createdAt})
      on conflict (organization_id, user_address) do update set role = excluded.role`,
  );
}

/** @returns false if there is no such member, or no longer */
export async function deleteMember(
  tx: Queryable,
  organizationId: string,
  user: string,
): Promise<boolean> {
  const rows = await tx.query(
    sql`delete from organization_member where organization_id = ${organizationId} and user_address = ${user}
      returning 1 as gone`,
  );
  return rows.length === 1;
}

/** Removes a deleted user from all organizations, even as the last owner. @returns how many those were */
export async function forgetMemberships(tx: Queryable, user: string): Promise<number> {
  const rows = await tx.query(
    sql`delete from organization_member where user_address = ${user} returning 1 as gone`,
  );
  return rows.length;
}

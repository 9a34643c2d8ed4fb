import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { parseUuid, uuidv7 } from "../platform/ids.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import {
  keepsOwner,
  type Organization,
  type OrganizationMember,
  parseOrganizationName,
  parseRole,
  type Role,
} from "./organization.ts";
import * as store from "./organization-store.ts";

const pageMax = 100;
const membersMax = 200;

/** @throws {Problem} invalid_request */
export async function createOrganization(
  ctx: Ctx,
  given: { name: string },
  actor: string,
): Promise<Organization> {
  const organization: Organization = {
    id: uuidv7(ctx.clock, ctx.random),
    name: parseOrganizationName(given.name),
    createdAt: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) => {
    await store.insertOrganization(tx, organization);
    await ctx.audit.record(tx, {
      actor,
      action: "organization.create",
      subject: organization.id,
      details: { name: organization.name },
    });
  });
  return organization;
}

/**
 * One page in the order of creation.
 *
 * @param page.after id of the last organization of the page before
 * @param page.limit 1 to 100
 * @throws {Problem} invalid_request
 */
export async function listOrganizations(
  ctx: Ctx,
  page: { after?: string; limit?: number } = {},
): Promise<Organization[]> {
  const { after, limit = pageMax } = page;
  if (!Number.isInteger(limit) || limit < 1 || limit > pageMax)
    throw invalidRequest(`limit must be 1 to ${pageMax}`);
  if (after !== undefined && parseUuid(after) === null)
    throw invalidRequest("after must be the id of an organization");
  return store.listOrganizations(ctx.db, { after: after ?? null, limit });
}

/** @throws {Problem} organization_not_found */
export async function getOrganization(ctx: Ctx, id: string): Promise<Organization> {
  const uuid = parseUuid(id);
  const organization = uuid === null ? null : await store.findOrganization(ctx.db, uuid);
  if (organization === null) throw new Problem("organization_not_found");
  return organization;
}

/**
 * Locks the organization, so that changes to its members, domains, keys, entitlements and money take turns.
 *
 * @returns its id in the spelling of the database
 * @throws {Problem} organization_not_found
 */
export async function lockOrganization(tx: Queryable, id: string): Promise<string> {
  const uuid = parseUuid(id);
  if (uuid === null || !(await store.lockOrganization(tx, uuid)))
    throw new Problem("organization_not_found");
  return uuid;
}

/** @throws {Problem} organization_not_found */
export async function listMembers(ctx: Ctx, organizationId: string): Promise<OrganizationMember[]> {
  const { id } = await getOrganization(ctx, organizationId);
  return store.listMembers(ctx.db, id);
}

/**
 * Adds a member, or gives an existing one another role.
 *
 * @throws {Problem} invalid_request, organization_not_found, last_owner, too_many (200 members)
 */
export async function addMember(
  ctx: Ctx,
  given: { organizationId: string; user: string; role: string },
  actor: string,
): Promise<OrganizationMember> {
  const user = readAddress("user", given.user);
  const role = parseRole(given.role);
  return ctx.db.transaction(async (tx) => {
    const { id, members } = await lockMembers(tx, given.organizationId);
    const known = members.find((member) => member.user === user);
    // This also makes the first member an owner.
    refuseOwnerless(members, { user, role });
    if (known === undefined && members.length >= membersMax)
      throw new Problem("too_many", {
        message: `an organization has at most ${membersMax} members; remove one first`,
      });
    const member = { user, role, createdAt: known?.createdAt ?? ctx.clock.now() };
    await store.upsertMember(tx, id, member);
    await ctx.audit.record(tx, {
      actor,
      action: "organization.member.add",
      subject: id,
      details: { user, role },
    });
    return member;
  });
}

/** @throws {Problem} invalid_request, organization_not_found, member_not_found, last_owner */
export async function removeMember(
  ctx: Ctx,
  given: { organizationId: string; user: string },
  actor: string,
): Promise<void> {
  const user = readAddress("user", given.user);
  await ctx.db.transaction(async (tx) => {
    const { id, members } = await lockMembers(tx, given.organizationId);
    // The deletion of a user removes its roles without this lock, so the member may be gone since `members` was read.
    if (!(await store.deleteMember(tx, id, user))) throw new Problem("member_not_found");
    refuseOwnerless(members, { user, role: null });
    await ctx.audit.record(tx, {
      actor,
      action: "organization.member.remove",
      subject: id,
      details: { user },
    });
  });
}

async function lockMembers(
  tx: Queryable,
  organizationId: string,
): Promise<{ id: string; members: OrganizationMember[] }> {
  const id = await lockOrganization(tx, organizationId);
  return { id, members: await store.listMembers(tx, id) };
}

function refuseOwnerless(
  members: readonly OrganizationMember[],
  change: { user: string; role: Role | null },
): void {
  if (!keepsOwner(members, change)) throw new Problem("last_owner");
}

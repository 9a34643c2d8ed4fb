import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { Problem } from "../platform/http/problems.ts";
import { type ApiKeyKind, kindOf, makeApiKey } from "./api-key.ts";
import * as store from "./api-key-store.ts";
import { getDomain } from "./client-domains.ts";
import { parseName } from "./organization.ts";
import { getOrganization, lockOrganization } from "./organizations.ts";

/** A key at the one moment it can be shown. */
export interface ShownApiKey extends store.ApiKeyRow {
  readonly key: string;
}

/** Live keys of one organization. */
const keysMax = 100;

/**
 * Makes a key of the KYC and KYB API for a client domain. It is shown only this once.
 *
 * @throws {Problem} invalid_request, client_domain_not_found, too_many (100 live keys in the organization)
 */
export async function createApiKey(
  ctx: Ctx,
  given: { clientDomainId: string; name: string },
  actor: string,
): Promise<ShownApiKey> {
  const { id, organizationId, environment } = await getDomain(ctx, given.clientDomainId);
  const scope = { organizationId, clientDomainId: id, kind: kindOf(environment) };
  return insertKey(ctx, { ...scope, name: parseName(given.name) }, actor);
}

/**
 * Makes a management key of an organization, which is listed and revoked like other keys; no route takes one yet. It is
 * shown only this once.
 *
 * @throws {Problem} invalid_request, organization_not_found, too_many (100 live keys in the organization)
 */
export async function createManagementKey(
  ctx: Ctx,
  given: { organizationId: string; name: string },
  actor: string,
): Promise<ShownApiKey> {
  const { id } = await getOrganization(ctx, given.organizationId);
  const scope = { organizationId: id, clientDomainId: null, kind: "mgmt" as const };
  return insertKey(ctx, { ...scope, name: parseName(given.name) }, actor);
}

/** Live keys, management keys first. @throws {Problem} organization_not_found */
export async function listApiKeys(ctx: Ctx, organizationId: string): Promise<store.ApiKeyRow[]> {
  const { id } = await getOrganization(ctx, organizationId);
  return store.listLiveApiKeys(ctx.db, id);
}

/** Revokes a key of either sort at once. @throws {Problem} apikey_not_found */
export async function revokeApiKey(ctx: Ctx, id: string, actor: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const revoked = await store.revokeApiKey(tx, id, ctx.clock.now());
    if (revoked === null) throw new Problem("apikey_not_found");
    await ctx.audit.record(tx, {
      actor,
      action: "api-key.revoke",
      subject: id,
      details: scopeOf(revoked),
    });
  });
}

interface NewKey {
  readonly organizationId: string;
  readonly clientDomainId: string | null;
  readonly kind: ApiKeyKind;
  readonly name: string;
}

async function insertKey(ctx: Ctx, given: NewKey, actor: string): Promise<ShownApiKey> {
  const made = makeApiKey(given.kind, (bound) => ctx.random.below(bound));
  const key = {
    id: made.id,
    organizationId: given.organizationId,
    clientDomainId: given.clientDomainId,
    name: given.name,
    createdAt: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) => {
    await refuseTooMany(tx, given.organizationId);
    await store.insertApiKey(tx, { ...key, mac: ctx.keys.mac("api-key", made.text) });
    await ctx.audit.record(tx, {
      actor,
      action: "api-key.create",
      subject: key.id,
      details: { ...scopeOf(key), name: key.name },
    });
  });
  return { ...key, lastUsedAt: null, key: made.text };
}

async function refuseTooMany(tx: Queryable, organizationId: string): Promise<void> {
  await lockOrganization(tx, organizationId);
  const live = await store.listLiveApiKeys(tx, organizationId);
  if (live.length >= keysMax)
    throw new Problem("too_many", {
      message: `an organization has at most ${keysMax} live API keys; revoke one first`,
    });
}

function scopeOf(key: Pick<NewKey, "organizationId" | "clientDomainId">): Record<string, unknown> {
  return { organizationId: key.organizationId, clientDomainId: key.clientDomainId };
}

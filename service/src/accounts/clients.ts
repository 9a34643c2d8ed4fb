import { randomUUID } from "node:crypto";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { addressPolicyOf } from "../platform/outbound/address-policy.ts";
import { parseUuid, uuidv7 } from "../platform/ids.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import {
  type AuthenticationMethod,
  checkClientSettings,
  clientDefaults,
  type ClientPolicy,
  type ClientSettings,
  liveSecretsMax,
  usesSecret,
} from "./client.ts";
import type { ClientDomain } from "./client-domain.ts";
import { lockDomain } from "./client-domain-store.ts";
import { getDomain, isVerifiedNow } from "./client-domains.ts";
import * as store from "./client-store.ts";

/** An OAuth client as its organization sees it. */
export interface ClientRecord extends store.ClientRow {
  readonly secrets: readonly store.SecretRow[];
}

/** The settings that a new client needs; everything else has a default. */
export type NewClient = { clientDomainId: string } & Pick<
  ClientSettings,
  "name" | "authenticationMethod"
> &
  Partial<ClientSettings>;

/** A secret at the one moment it can be shown. */
export interface ShownSecret {
  readonly id: string;
  readonly secret: string;
}

const clientsMax = 100;
const secretBytes = 32;

/**
 * Registers an OAuth client, with its first secret if its type has one.
 *
 * @throws {Problem} invalid_request, client_domain_not_found, too_many (100 clients in the domain that are not
 * disabled)
 */
export async function createClient(
  ctx: Ctx,
  given: NewClient,
  actor: string,
): Promise<{ client: ClientRecord; secret: string | null }> {
  const { clientDomainId, ...chosen } = given;
  const id = randomUUID();
  const secret = await ctx.db.transaction(async (tx) => {
    const domain = await lockClientDomain(tx, clientDomainId);
    const settings = checkClientSettings({ ...clientDefaults, ...chosen }, policyOf(ctx, domain));
    await refuseForeignAudiences(ctx, tx, { clientId: id, domain, added: settings.audiences });
    if ((await store.countClients(tx, domain.id)) >= clientsMax)
      throw new Problem("too_many", {
        message: `a client domain has at most ${clientsMax} clients; disable one first`,
      });
    const createdAt = ctx.clock.now();
    await store.insertClient(tx, {
      id,
      clientDomainId: domain.id,
      settings,
      createdAt,
      disabledAt: null,
    });
    await ctx.audit.record(tx, {
      actor,
      action: "client.create",
      subject: id,
      details: { clientDomainId: domain.id, ...auditOf(settings) },
    });
    return usesSecret(settings.authenticationMethod) ? insertSecret(ctx, tx, id) : null;
  });
  return { client: await getClient(ctx, id), secret: secret?.secret ?? null };
}

/**
 * Changes settings; those that are not given stay. All settings are checked again against the domain as it is now.
 *
 * @throws {Problem} invalid_request, client_not_found
 */
export async function updateClient(
  ctx: Ctx,
  given: { clientId: string; changes: Partial<ClientSettings> },
  actor: string,
): Promise<ClientRecord> {
  const { clientDomainId } = await getClient(ctx, given.clientId);
  await ctx.db.transaction(async (tx) => {
    const domain = await lockClientDomain(tx, clientDomainId);
    const client = await lockClient(tx, given.clientId);
    const wanted = { ...client.settings, ...given.changes };
    refuseTypeChange(client.settings.authenticationMethod, wanted.authenticationMethod);
    const policy = { ...policyOf(ctx, domain), registered: client.settings };
    const settings = checkClientSettings(wanted, policy);
    const known = new Set(client.settings.audiences);
    const added = settings.audiences.filter((audience) => !known.has(audience));
    await refuseForeignAudiences(ctx, tx, { clientId: client.id, domain, added });
    await store.updateClient(tx, client.id, settings);
    await ctx.audit.record(tx, {
      actor,
      action: "client.update",
      subject: client.id,
      details: auditOf(settings),
    });
  });
  return getClient(ctx, given.clientId);
}

/**
 * Disables a client for good: it is unknown from now on, and its refresh tokens are refused.
 *
 * @throws {Problem} client_not_found
 */
export async function disableClient(ctx: Ctx, clientId: string, actor: string): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const client = await lockClient(tx, clientId);
    await store.disableClient(tx, client.id, ctx.clock.now());
    await ctx.audit.record(tx, { actor, action: "client.disable", subject: client.id });
  });
}

/** @throws {Problem} client_not_found */
export async function getClient(ctx: Ctx, clientId: string): Promise<ClientRecord> {
  const id = parseUuid(clientId);
  const client = id === null ? null : await store.findClient(ctx.db, id);
  if (client === null) throw new Problem("client_not_found");
  return { ...client, secrets: await store.listLiveSecrets(ctx.db, client.id) };
}

/** The clients of a domain, disabled ones included. @throws {Problem} client_domain_not_found */
export async function listClients(ctx: Ctx, clientDomainId: string): Promise<store.ClientRow[]> {
  const { id } = await getDomain(ctx, clientDomainId);
  return store.listClients(ctx.db, id);
}

/**
 * Makes another secret and shows it only this once; the older one stays valid until it is revoked.
 *
 * @throws {Problem} client_not_found, invalid_request (a type without secrets), too_many_secrets
 */
export async function addSecret(ctx: Ctx, clientId: string, actor: string): Promise<ShownSecret> {
  return ctx.db.transaction(async (tx) => {
    const client = await lockClient(tx, clientId);
    const method = client.settings.authenticationMethod;
    if (!usesSecret(method)) throw invalidRequest(`a client of the type ${method} has no secrets`);
    const live = await store.listLiveSecrets(tx, client.id);
    if (live.length >= liveSecretsMax) throw new Problem("too_many_secrets");
    const added = await insertSecret(ctx, tx, client.id);
    await ctx.audit.record(tx, {
      actor,
      action: "client.secret.add",
      subject: client.id,
      details: { secretId: added.id },
    });
    return added;
  });
}

/** Ends a secret at once. @throws {Problem} client_not_found, secret_not_found */
export async function revokeSecret(
  ctx: Ctx,
  given: { clientId: string; secretId: string },
  actor: string,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const client = await lockClient(tx, given.clientId);
    const id = parseUuid(given.secretId);
    const secret = { clientId: client.id, now: ctx.clock.now() };
    const isRevoked = id !== null && (await store.revokeSecret(tx, { id, ...secret }));
    if (!isRevoked) throw new Problem("secret_not_found");
    await ctx.audit.record(tx, {
      actor,
      action: "client.secret.revoke",
      subject: client.id,
      details: { secretId: id },
    });
  });
}

async function insertSecret(ctx: Ctx, tx: Queryable, clientId: string): Promise<ShownSecret> {
  const id = uuidv7(ctx.clock, ctx.random);
  const secret = ctx.random.bytes(secretBytes).toString("base64url");
  const row = { id, clientId, sha256: sha256(secret), createdAt: ctx.clock.now() };
  await store.insertSecret(tx, row);
  return { id, secret };
}

/**
 * An API that checks the audience accepts the tokens of every client that has it. A client's id is the audience of its
 * tokens that ask for none, so no other client may name it; ids are random, so a future one cannot be guessed. In
 * production, organizations cannot share an audience: the tokens of one's users would be accepted at the other's API.
 *
 * @throws {Problem} invalid_request
 */
async function refuseForeignAudiences(
  ctx: Ctx,
  tx: Queryable,
  { clientId, domain, added }: { clientId: string; domain: ClientDomain; added: readonly string[] },
): Promise<void> {
  const ids = await store.listClientIds(tx, added);
  if (ids.some((id) => id !== clientId)) throw invalidRequest("audiences names another client");
  if (ctx.config.profile !== "production" || added.length === 0) return;
  const { organizationId } = domain;
  if (await store.hasAudienceOfOthers(tx, { organizationId, audiences: added }))
    throw invalidRequest("audiences names one that a client of another organization has");
}

/** Every change locks the domain before the client, so that two changes never wait for each other. */
async function lockClientDomain(tx: Queryable, id: string): Promise<ClientDomain> {
  const uuid = parseUuid(id);
  const domain = uuid === null ? null : await lockDomain(tx, uuid);
  if (domain === null) throw new Problem("client_domain_not_found");
  return domain;
}

async function lockClient(tx: Queryable, clientId: string): Promise<store.ClientRow> {
  const id = parseUuid(clientId);
  const client = id === null ? null : await store.lockClient(tx, id);
  if (client === null) throw new Problem("client_not_found");
  // Operators see disabled clients in lists, so "not found" alone would mislead them.
  if (client.disabledAt !== null)
    throw new Problem("client_not_found", { message: "the client is disabled" });
  return client;
}

function policyOf(ctx: Ctx, domain: ClientDomain): ClientPolicy {
  return {
    ...addressPolicyOf(ctx.config),
    domain: isVerifiedNow(ctx, domain) ? domain.domain : null,
  };
}

/** Tokens and secrets were issued for one type, so it may only change between the two ways to send a secret. */
function refuseTypeChange(from: AuthenticationMethod, to: AuthenticationMethod): void {
  if (from !== to && !(usesSecret(from) && usesSecret(to)))
    throw invalidRequest(`a client of the type ${from} cannot become ${to}; create another client`);
}

/** The settings that the audit trail records: those that decide who may log in where, and how strictly. */
function auditOf(settings: ClientSettings): Record<string, unknown> {
  const { jwks, ...rest } = settings;
  return { ...rest, keyIds: jwks?.keys.map((key) => key.kid ?? null) ?? null };
}

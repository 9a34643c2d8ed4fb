import type { AuthorizationCode } from "./token/authorization-code.ts";
import { type Queryable, sql } from "../platform/database/db.ts";

export interface TestClientRow {
  readonly id: string;
  readonly method: string;
  readonly redirectUris: readonly string[];
  readonly audiences: readonly string[];
  readonly postLogoutRedirectUris: readonly string[];
  readonly backchannelLogoutUri: string | null;
  readonly jwks: object | null;
  readonly jwksUri: string | null;
  readonly dpopRequired: boolean;
  readonly idTokenAlgorithm: string;
  readonly secretSha256: Buffer | null;
}

/** A client with all that it belongs to, past every check of its settings. */
export async function insertTestClient(db: Queryable, client: TestClientRow): Promise<void> {
  await db.query(sql`
    with org as (
      insert into organization (id, name, created_at) values (gen_random_uuid(), 'Test', 1) returning id),
    domain as (
      insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
      select gen_random_uuid(), id, 'localhost', 'live', 'proof', 1 from org returning id),
    client as (
      insert into oauth_client (id, client_domain_id, name, authentication_method, redirect_uris, post_logout_redirect_uris,
        audiences, backchannel_logout_uri, jwks, jwks_uri, dpop_required, id_token_algorithm, created_at)
      select ${client.id}::text, id, 'Shop', ${client.method}::text, ${client.redirectUris}::text[], ${client.postLogoutRedirectUris}::text[],
        ${client.audiences}::text[], ${client.backchannelLogoutUri}::text, ${client.jwks}::jsonb, ${client.jwksUri}::text,
        ${client.dpopRequired}::boolean, ${client.idTokenAlgorithm}::text, 1 from domain returning id)
    select from client`);
  if (client.secretSha256 === null) return;
  await db.query(sql`
    insert into client_secret (id, client_id, sha256, created_at)
    values (gen_random_uuid(), ${client.id}, ${client.secretSha256}, 1)`);
}

export interface TestLoginRow {
  readonly clientId: string;
  readonly user: string;
  readonly sessionId: string;
  readonly sessionSecretSha256: Buffer;
  readonly request: object;
  readonly code: AuthorizationCode;
  readonly now: number;
  readonly codeExpiresAt: number;
}

/** A finished login whose code was not redeemed, with its user and session. */
export async function insertTestLogin(db: Queryable, login: TestLoginRow): Promise<void> {
  await db.query(
    sql`insert into svc_user (address, created_at) values (${login.user}, 1) on conflict do nothing`,
  );
  await db.query(sql`
    insert into session (id, secret_sha256, user_address, authenticated_at, acr, created_at, used_at, approvals)
    values (${login.sessionId}, ${login.sessionSecretSha256}, ${login.user}, ${login.now}, 'urn:svc:acr:qr', ${login.now}, ${login.now}, '[]')
    on conflict (id) do nothing`);
  await db.query(sql`
    insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at, claimed_by, acr,
      approved_at, session_id, code_sha256, code_expires_at, finished_at)
    values (${login.code.loginId}, ${login.clientId}, ${JSON.stringify(login.request)}, 'finished', '', '', ${login.now}, ${login.now + 120},
      ${login.user}, 'urn:svc:acr:qr', ${login.now}, ${login.sessionId}, ${login.code.sha256}, ${login.codeExpiresAt}, ${login.now})`);
}

export interface TestFamilyRow {
  readonly id: string;
  readonly generation: number;
  readonly revokedReason: string | null;
  readonly hasSuccessor: boolean;
}

export async function listTestFamilies(db: Queryable): Promise<TestFamilyRow[]> {
  return db.query<TestFamilyRow>(sql`
    select id, generation, revoked_reason as "revokedReason", successor_sealed is not null as "hasSuccessor"
    from token_family order by id`);
}

/** All families as they are now, for {@link restoreTestFamilies}. */
export async function dumpTestFamilies(db: Queryable): Promise<unknown> {
  const [row] = await db.query<{ families: unknown }>(sql`
    select coalesce(jsonb_agg(token_family), '[]') as families from token_family`);
  return row?.families;
}

/** Puts all families back to how they were, as a restored backup does. */
export async function restoreTestFamilies(db: Queryable, families: unknown): Promise<void> {
  await db.query(sql`delete from token_family`);
  await db.query(sql`
    insert into token_family
    select * from jsonb_populate_recordset(null::token_family, ${JSON.stringify(families)}::jsonb)`);
}

export interface TestKeyRow {
  readonly kid: string;
  readonly purpose: string;
  readonly startsAt: number;
}

export async function listTestKeys(db: Queryable): Promise<TestKeyRow[]> {
  return db.query<TestKeyRow>(sql`
    select kid, purpose, starts_at as "startsAt" from signing_key where revoked_at is null order by purpose, starts_at`);
}

/** Logouts that a client has to be told of since then. */
export async function insertTestLogouts(
  db: Queryable,
  given: { clientId: string; user: string; dueAt: number; count: number },
): Promise<void> {
  await db.query(sql`
    insert into logout_delivery (id, client_id, user_address, due_at, created_at)
    select gen_random_uuid(), ${given.clientId}, ${given.user}, ${given.dueAt}, ${given.dueAt}
    from generate_series(1, ${given.count}::int)`);
}

export async function listTestLogouts(
  db: Queryable,
): Promise<{ clientId: string; attempts: number; outcome: string | null }[]> {
  return db.query(
    sql`select client_id as "clientId", attempts, outcome from logout_delivery order by client_id`,
  );
}

/** Gives clients to the organization that another one belongs to. */
export async function moveTestClients(
  db: Queryable,
  ids: readonly string[],
  toThatOf: string,
): Promise<void> {
  await db.query(sql`
    update oauth_client set client_domain_id = (select client_domain_id from oauth_client where id = ${toThatOf})
    where id = any(${ids}::text[])`);
}

/** Another secret of a client, which nobody announces. */
export async function addTestSecret(
  db: Queryable,
  { clientId, secretSha256 }: { clientId: string; secretSha256: Buffer },
): Promise<void> {
  await db.query(sql`
    insert into client_secret (id, client_id, sha256, created_at)
    values (gen_random_uuid(), ${clientId}, ${secretSha256}, 1)`);
}

/** Changes a client as another process does whose notification is lost. */
export async function changeTestClient(
  db: Queryable,
  id: string,
  changes: Partial<
    Pick<
      TestClientRow,
      | "method"
      | "jwks"
      | "audiences"
      | "redirectUris"
      | "postLogoutRedirectUris"
      | "backchannelLogoutUri"
    >
  >,
): Promise<void> {
  const { method, jwks, audiences, redirectUris, postLogoutRedirectUris, backchannelLogoutUri } =
    changes;
  await db.query(sql`
    update oauth_client set authentication_method = coalesce(${method ?? null}::text, authentication_method),
      jwks = coalesce(${jwks ?? null}::jsonb, jwks),
      audiences = coalesce(${audiences ?? null}::text[], audiences),
      redirect_uris = coalesce(${redirectUris ?? null}::text[], redirect_uris),
      post_logout_redirect_uris = coalesce(${postLogoutRedirectUris ?? null}::text[], post_logout_redirect_uris),
      backchannel_logout_uri = coalesce(${backchannelLogoutUri ?? null}::text, backchannel_logout_uri)
    where id = ${id}`);
}

export async function disableTestClient(db: Queryable, id: string): Promise<void> {
  await db.query(sql`
    with disabled as (update oauth_client set disabled_at = 1 where id = ${id} returning id)
    select pg_notify('client', id) from disabled`);
}

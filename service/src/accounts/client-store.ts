import { advisoryLocks } from "../platform/database/advisory-locks.ts";
import { columns, type Queryable, sql } from "../platform/database/db.ts";
import type { ClientSettings } from "./client.ts";
import type { Environment } from "./client-domain.ts";

/** An OAuth client as its organization sees it; secrets without their hashes. */
export interface ClientRow {
  readonly id: string;
  readonly clientDomainId: string;
  readonly settings: ClientSettings;
  readonly createdAt: number;
  readonly disabledAt: number | null;
}

/** A secret that is live, or was. */
export interface SecretRow {
  readonly id: string;
  readonly createdAt: number;
  /** To the minute; null if it was never used. */
  readonly lastUsedAt: number | null;
}

/** A client with its domain and its secrets in one row, for the login engine. */
export interface LiveClientRow extends ClientSettings {
  readonly id: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly domain: string;
  readonly environment: Environment;
  readonly provedAt: number | null;
  readonly loginsPerClientMinute: number | null;
  readonly secretIds: readonly string[];
  readonly secretHashes: readonly Buffer[];
}

const settingsColumns = columns`
  oauth_client.name, authentication_method as "authenticationMethod", redirect_uris as "redirectUris",
  post_logout_redirect_uris as "postLogoutRedirectUris", audiences, backchannel_logout_uri as "backchannelLogoutUri",
  jwks, jwks_uri as "jwksUri", number_matching as "numberMatching", pkce_required as "pkceRequired",
  dpop_required as "dpopRequired", pushed_request_required as "pushedRequestRequired",
  id_token_algorithm as "idTokenAlgorithm", acr_minimum as "acrMinimum"`;

/** The columns of a {@link ClientRow} beside its settings. */
const clientColumns = columns`
  id, client_domain_id as "clientDomainId", created_at as "createdAt", disabled_at as "disabledAt"`;

type ClientColumns = Omit<ClientRow, "settings"> & ClientSettings;

function toClientRow(row: ClientColumns): ClientRow {
  const { id, clientDomainId, createdAt, disabledAt, ...settings } = row;
  return { id, clientDomainId, settings, createdAt, disabledAt };
}

/** The row of an enabled client, secrets included; a single call, for the hot path's cache. */
export async function findLiveClient(db: Queryable, id: string): Promise<LiveClientRow | null> {
  const [row] = await db.query<LiveClientRow>(
    sql`select oauth_client.id, client_domain_id as "clientDomainId", organization_id as "organizationId", domain,
        environment, proved_at as "provedAt", logins_per_client_minute as "loginsPerClientMinute", ${settingsColumns},
        array(select secret.id::text from client_secret as secret
          where client_id = oauth_client.id and revoked_at is null order by secret.id) as "secretIds",
        array(select sha256 from client_secret as secret
          where client_id = oauth_client.id and revoked_at is null order by secret.id) as "secretHashes"
      from oauth_client join client_domain on client_domain.id = client_domain_id
        join organization on organization.id = organization_id
      where oauth_client.id = ${id} and disabled_at is null`,
  );
  return row ?? null;
}

export async function findClient(db: Queryable, id: string): Promise<ClientRow | null> {
  const [row] = await db.query<ClientColumns>(
    sql`select ${clientColumns}, ${settingsColumns} from oauth_client where id = ${id}`,
  );
  return row === undefined ? null : toClientRow(row);
}

/** Locks the client, so that changes to it and its secrets take turns. */
export async function lockClient(tx: Queryable, id: string): Promise<ClientRow | null> {
  const [row] = await tx.query<ClientColumns>(
    sql`select ${clientColumns}, ${settingsColumns} from oauth_client where id = ${id} for update`,
  );
  return row === undefined ? null : toClientRow(row);
}

export async function listClients(db: Queryable, clientDomainId: string): Promise<ClientRow[]> {
  const rows = await db.query<ClientColumns>(
    sql`select ${clientColumns}, ${settingsColumns}
      from oauth_client where client_domain_id = ${clientDomainId} order by created_at, id`,
  );
  return rows.map(toClientRow);
}

/** Does not count disabled clients. */
export async function countClients(tx: Queryable, clientDomainId: string): Promise<number> {
  const [row] = await tx.query<{ count: number }>(
    sql`select count(*) from oauth_client where client_domain_id = ${clientDomainId} and disabled_at is null`,
  );
  return row?.count ?? 0;
}

/** Which of these texts are ids of clients, disabled ones included. */
export async function listClientIds(tx: Queryable, texts: readonly string[]): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select id from oauth_client where id = any(${[...texts]}::text[])`,
  );
  return rows.map(({ id }) => id);
}

/**
 * Whether an enabled client of another organization has one of these audiences. Takes a lock, so that if two
 * organizations want the same audience at once, the second call finds the first client.
 */
export async function hasAudienceOfOthers(
  tx: Queryable,
  { organizationId, audiences }: { organizationId: string; audiences: readonly string[] },
): Promise<boolean> {
  await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.clientAudiences})`);
  const rows = await tx.query(
    sql`select from oauth_client as client join client_domain on client_domain.id = client_domain_id
      where audiences && ${[...audiences]}::text[] and organization_id <> ${organizationId} and disabled_at is null
      limit 1`,
  );
  return rows.length > 0;
}

export async function insertClient(tx: Queryable, client: ClientRow): Promise<void> {
  const { settings } = client;
  await tx.query(
    sql`insert into oauth_client (id, client_domain_id, name, authentication_method, redirect_uris,
        post_logout_redirect_uris, audiences, backchannel_logout_uri, jwks, jwks_uri, number_matching,
        pkce_required, dpop_required, pushed_request_required, id_token_algorithm, acr_minimum, created_at)
      values (${client.id}, ${client.clientDomainId}, ${settings.name}, ${settings.authenticationMethod},
        ${settings.redirectUris}, ${settings.postLogoutRedirectUris}, ${settings.audiences},
        ${settings.backchannelLogoutUri}, ${settings.jwks}, ${settings.jwksUri}, ${settings.numberMatching},
        ${settings.pkceRequired}, ${settings.dpopRequired}, ${settings.pushedRequestRequired},
        ${settings.idTokenAlgorithm}, ${settings.acrMinimum}, ${client.createdAt})`,
  );
  await announceClient(tx, client.id);
}

export async function updateClient(
  tx: Queryable,
  id: string,
  settings: ClientSettings,
): Promise<void> {
  await tx.query(
    sql`update oauth_client set name = ${settings.name}, authentication_method = ${settings.authenticationMethod},
        redirect_uris = ${settings.redirectUris}, post_logout_redirect_uris = ${settings.postLogoutRedirectUris},
        audiences = ${settings.audiences}, backchannel_logout_uri = ${settings.backchannelLogoutUri},
        jwks = ${settings.jwks}, jwks_uri = ${settings.jwksUri}, number_matching = ${settings.numberMatching},
        pkce_required = ${settings.pkceRequired}, dpop_required = ${settings.dpopRequired},
        pushed_request_required = ${settings.pushedRequestRequired},
        id_token_algorithm = ${settings.idTokenAlgorithm}, acr_minimum = ${settings.acrMinimum}
      where id = ${id}`,
  );
  await announceClient(tx, id);
}

export async function disableClient(tx: Queryable, id: string, now: number): Promise<void> {
  await tx.query(
    sql`update oauth_client set disabled_at = ${now} where id = ${id} and disabled_at is null`,
  );
  await announceClient(tx, id);
}

export async function listLiveSecrets(db: Queryable, clientId: string): Promise<SecretRow[]> {
  return db.query<SecretRow>(
    sql`select id, created_at as "createdAt", last_used_at as "lastUsedAt" from client_secret
      where client_id = ${clientId} and revoked_at is null order by created_at, id`,
  );
}

export async function insertSecret(
  tx: Queryable,
  secret: { id: string; clientId: string; sha256: Buffer; createdAt: number },
): Promise<void> {
  await tx.query(
    sql`insert into client_secret (id, client_id, sha256, created_at)
      values (${secret.id}, ${secret.clientId}, ${secret.sha256}, ${secret.createdAt})`,
  );
  await announceClient(tx, secret.clientId);
}

/** @returns false if the client has no such live secret */
export async function revokeSecret(
  tx: Queryable,
  secret: { id: string; clientId: string; now: number },
): Promise<boolean> {
  const rows = await tx.query(
    sql`update client_secret set revoked_at = ${secret.now}
      where id = ${secret.id} and client_id = ${secret.clientId} and revoked_at is null returning id`,
  );
  await announceClient(tx, secret.clientId);
  return rows.length > 0;
}

export async function recordSecretUses(
  db: Queryable,
  uses: readonly { id: string; at: number }[],
): Promise<void> {
  await db.query(
    sql`update client_secret set last_used_at = greatest(last_used_at, seen.at)
      from unnest(${uses.map((use) => use.id)}::uuid[], ${uses.map((use) => use.at)}::bigint[]) as seen (id, at)
      where client_secret.id = seen.id`,
  );
}

/** Sent when the transaction commits, so that processes read the client again only once the change is visible. */
async function announceClient(tx: Queryable, id: string): Promise<void> {
  await tx.query(sql`select pg_notify('client', ${id})`);
}

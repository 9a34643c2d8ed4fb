import { columns, type Queryable, sql } from "../platform/database/db.ts";
import type { Environment } from "./client-domain.ts";

/** A key as its organization sees it. */
export interface ApiKeyRow {
  readonly id: string;
  readonly organizationId: string;
  /** Null for a management key. */
  readonly clientDomainId: string | null;
  readonly name: string;
  readonly createdAt: number;
  /** To the minute; null if it was never used. */
  readonly lastUsedAt: number | null;
}

/** A live key with the domain it serves, in one row. */
export interface LiveApiKeyRow {
  readonly id: string;
  readonly organizationId: string;
  readonly clientDomainId: string | null;
  readonly mac: Buffer;
  readonly domain: string | null;
  readonly environment: Environment | null;
  readonly provedAt: number | null;
  readonly entitlements: readonly string[];
  readonly readsPerSecond: number | null;
  readonly createsPerSecond: number | null;
}

const keyColumns = columns`
  id, organization_id as "organizationId", client_domain_id as "clientDomainId", name, created_at as "createdAt",
  last_used_at as "lastUsedAt"`;

export async function findLiveApiKey(db: Queryable, id: string): Promise<LiveApiKeyRow | null> {
  const [row] = await db.query<LiveApiKeyRow>(
    sql`select api_key.id, api_key.organization_id as "organizationId", client_domain_id as "clientDomainId", mac,
        domain, environment, proved_at as "provedAt",
        array(select entitlement from organization_entitlement
          where organization_entitlement.organization_id = api_key.organization_id) as entitlements,
        reads_per_second as "readsPerSecond", creates_per_second as "createsPerSecond"
      from api_key join organization on organization.id = api_key.organization_id
        left join client_domain on client_domain.id = client_domain_id
      where api_key.id = ${id} and revoked_at is null`,
  );
  return row ?? null;
}

export async function insertApiKey(
  tx: Queryable,
  key: Omit<ApiKeyRow, "lastUsedAt"> & { mac: Buffer },
): Promise<void> {
  await tx.query(
    sql`insert into api_key (id, organization_id, client_domain_id, name, mac, created_at)
      values (${key.id}, ${key.organizationId}, ${key.clientDomainId}, ${key.name}, ${key.mac}, ${key.createdAt})`,
  );
  await announceApiKey(tx, key.id);
}

/** Live keys of the organization, management keys first. */
export async function listLiveApiKeys(db: Queryable, organizationId: string): Promise<ApiKeyRow[]> {
  return db.query<ApiKeyRow>(
    sql`select ${keyColumns} from api_key
      where organization_id = ${organizationId} and revoked_at is null
      order by client_domain_id nulls first, created_at, id`,
  );
}

/** @returns the key, or null if there is no such live key */
export async function revokeApiKey(
  tx: Queryable,
  id: string,
  now: number,
): Promise<ApiKeyRow | null> {
  const [row] = await tx.query<ApiKeyRow>(
    sql`update api_key set revoked_at = ${now} where id = ${id} and revoked_at is null
      returning ${keyColumns}`,
  );
  await announceApiKey(tx, id);
  return row ?? null;
}

export async function recordApiKeyUses(
  db: Queryable,
  uses: readonly { id: string; at: number }[],
): Promise<void> {
  await db.query(
    sql`update api_key set last_used_at = greatest(last_used_at, seen.at)
      from unnest(${uses.map((use) => use.id)}::text[], ${uses.map((use) => use.at)}::bigint[]) as seen (id, at)
      where api_key.id = seen.id`,
  );
}

async function announceApiKey(tx: Queryable, id: string): Promise<void> {
  await tx.query(sql`select pg_notify('api-key', ${id})`);
}

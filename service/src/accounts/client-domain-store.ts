import { columns, type Queryable, sql } from "../platform/database/db.ts";
import type { ClientDomain } from "./client-domain.ts";

const domainColumns = columns`
  id, organization_id as "organizationId", domain, environment, proof_token as "proofToken", proved_at as "provedAt",
  checked_at as "checkedAt", failing_since as "failingSince", callback_hosts as "callbackHosts",
  created_at as "createdAt"`;

/** @returns false if the organization already has this domain in this environment */
export async function insertDomain(
  tx: Queryable,
  domain: Omit<ClientDomain, "callbackHosts">,
): Promise<boolean> {
  const rows = await tx.query(
    sql`insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
      values (${domain.id}, ${domain.organizationId}, ${domain.domain}, ${domain.environment},
        ${domain.proofToken}, ${domain.createdAt})
      on conflict (organization_id, domain, environment) do nothing
      returning id`,
  );
  return rows.length > 0;
}

/** @returns false if the organization already has that domain in this environment */
export async function renameDomain(tx: Queryable, id: string, domain: string): Promise<boolean> {
  const rows = await tx.query(
    sql`update client_domain as moved set domain = ${domain}
      where id = ${id} and not exists (
        select 1 from client_domain as other
        where other.organization_id = moved.organization_id and other.environment = moved.environment
          and other.domain = ${domain})
      returning id`,
  );
  return rows.length > 0;
}

export async function setCallbackHosts(
  tx: Queryable,
  given: { id: string; hosts: readonly string[] | null },
): Promise<void> {
  await tx.query(
    sql`update client_domain set callback_hosts = ${given.hosts}::text[] where id = ${given.id}`,
  );
}

export async function findDomain(db: Queryable, id: string): Promise<ClientDomain | null> {
  const [row] = await db.query<ClientDomain>(
    sql`select ${domainColumns} from client_domain where id = ${id}`,
  );
  return row ?? null;
}

/** Locks the domain, so that changes to what belongs to it take turns. */
export async function lockDomain(tx: Queryable, id: string): Promise<ClientDomain | null> {
  const [row] = await tx.query<ClientDomain>(
    sql`select ${domainColumns} from client_domain where id = ${id} for update`,
  );
  return row ?? null;
}

export async function listDomains(db: Queryable, organizationId: string): Promise<ClientDomain[]> {
  return db.query<ClientDomain>(
    sql`select ${domainColumns} from client_domain where organization_id = ${organizationId} order by id`,
  );
}

export interface CheckResult {
  readonly id: string;
  readonly isProved: boolean;
  readonly now: number;
  /** Not stored while the domain has never been proved: it is checked only on request. */
  readonly nextCheckAt: number;
  /** The lease under which the check ran; null for a check on request. */
  readonly leaseId: string | null;
}

type KnownProof = Pick<ClientDomain, "provedAt" | "checkedAt" | "failingSince">;

/**
 * Records a check. A check that has lost its lease meanwhile changes nothing.
 *
 * @returns what was known before, or null if nothing was written
 */
export async function recordCheck(tx: Queryable, check: CheckResult): Promise<KnownProof | null> {
  const [before] = await tx.query<KnownProof>(
    sql`with before as (
        select id, proved_at, checked_at, failing_since from client_domain
        where id = ${check.id} and (${check.leaseId}::uuid is null or lease_id = ${check.leaseId}::uuid)
        for update)
      update client_domain set
        checked_at = ${check.now},
        proved_at = case when ${check.isProved} then ${check.now} else before.proved_at end,
        failing_since = case when ${check.isProved} then null else coalesce(before.failing_since, ${check.now}) end,
        check_due_at = case when ${check.isProved} or before.proved_at is not null then ${check.nextCheckAt}::bigint end,
        lease_id = null,
        leased_until = null
      from before where client_domain.id = before.id
      returning before.proved_at as "provedAt", before.checked_at as "checkedAt",
        before.failing_since as "failingSince"`,
  );
  return before ?? null;
}

/** Leases domains whose check is due; two processes never hold the same one. */
export async function leaseDueDomains(
  db: Queryable,
  lease: { id: string; now: number; until: number; limit: number },
): Promise<ClientDomain[]> {
  return db.query<ClientDomain>(
    sql`with due (due_id) as (
        select id from client_domain
        where check_due_at <= ${lease.now} and (leased_until is null or leased_until <= ${lease.now})
        order by check_due_at limit ${lease.limit}
        for update skip locked)
      update client_domain set lease_id = ${lease.id}, leased_until = ${lease.until}
      from due where id = due_id
      returning ${domainColumns}`,
  );
}

/** Tells every process to read the domain's clients and keys again, once this transaction commits. */
export async function announceDomain(tx: Queryable, id: string): Promise<void> {
  await tx.query(
    sql`select pg_notify('client', id) from oauth_client where client_domain_id = ${id}
      union all
      select pg_notify('api-key', id) from api_key where client_domain_id = ${id} and revoked_at is null`,
  );
}

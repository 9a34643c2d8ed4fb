import type { Address } from "@svc/protocol";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { lastUlid } from "../../platform/ids.ts";
import type { DataRequest, DataRequestReason, DataRequestStatus } from "./data-request.ts";

const requestColumns = columns`
  id, client_domain_id as "clientDomainId", organization_id as "organizationId", environment, business, purpose,
  reference, fields, quoted_rappen as "quotedRappen", status, reason, sequence, created_at as "createdAt",
  expires_at as "expiresAt", fixed_optional as "fixedOptional", approved_at as "approvedAt"`;

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const pending = "pending_approval";

/** Inserts a request unless the client domain has an open one to that business. @returns false if it has */
export async function insertRequest(tx: Queryable, request: DataRequest): Promise<boolean> {
  const rows = await tx.query(
    sql`insert into data_request (id, client_domain_id, organization_id, environment, business, purpose, reference,
        fields, quoted_rappen, status, sequence, created_at, expires_at)
      values (${request.id}, ${request.clientDomainId}, ${request.organizationId}, ${request.environment},
        ${request.business}, ${request.purpose}, ${request.reference}, ${JSON.stringify(request.fields)},
        ${request.quotedRappen}, ${request.status}, ${request.sequence}, ${request.createdAt}, ${request.expiresAt})
      on conflict (client_domain_id, business) where status = 'pending_approval' do nothing
      returning 1 as made`,
  );
  return rows.length === 1;
}

/** The open request of a client domain to a business. */
export async function findOpenRequest(
  db: Queryable,
  of: { clientDomainId: string; business: Address },
): Promise<string | null> {
  const [row] = await db.query<{ id: string }>(
    sql`select id from data_request
      where client_domain_id = ${of.clientDomainId} and business = ${of.business} and status = 'pending_approval'`,
  );
  return row?.id ?? null;
}

export async function findRequest(db: Queryable, id: string): Promise<DataRequest | null> {
  const [request] = await findRequests(db, [id]);
  return request ?? null;
}

/** In any order. */
export async function findRequests(db: Queryable, ids: readonly string[]): Promise<DataRequest[]> {
  return db.query<DataRequest>(
    sql`select ${requestColumns} from data_request where id = any(${[...ids]})`,
  );
}

/** Newest first. @param page.before lists requests before this id */
export async function listRequests(
  db: Queryable,
  clientDomainId: string,
  page: { status: string | null; before: string | null; limit: number },
): Promise<DataRequest[]> {
  const { status, before, limit } = { ...page, before: page.before ?? lastUlid };
  // Two statements, because a single one would have one plan, which reads every request of the client domain.
  return db.query<DataRequest>(
    status === null
      ? sql`select ${requestColumns} from data_request
          where client_domain_id = ${clientDomainId} and id < ${before}
          order by id desc limit ${limit}`
      : sql`select ${requestColumns} from data_request
          where client_domain_id = ${clientDomainId} and status = ${status} and id < ${before}
          order by id desc limit ${limit}`,
  );
}

/** Ends an open request and advances the sequence of its events. @returns null if it has ended already */
export async function endRequest(
  tx: Queryable,
  ended: {
    id: string;
    status: Exclude<DataRequestStatus, "pending_approval">;
    reason: DataRequestReason | null;
    now: number;
  },
): Promise<DataRequest | null> {
  const [row] = await tx.query<DataRequest>(
    sql`update data_request set status = ${ended.status}, reason = ${ended.reason}, ended_at = ${ended.now},
        sequence = sequence + 1
      where id = ${ended.id} and status = ${pending}
      returning ${requestColumns}`,
  );
  return row ?? null;
}

/** Fixes which optional fields are released; null makes that open again. */
export async function fixOptional(
  tx: Queryable,
  id: string,
  optional: readonly string[] | null,
): Promise<void> {
  await tx.query(
    sql`update data_request set fixed_optional = ${optional === null ? null : [...optional]}
      where id = ${id} and status = ${pending}`,
  );
}

/** Records that enough members have refused, which is announced later. */
export async function putOffRefusal(tx: Queryable, id: string, dueAt: number): Promise<void> {
  await tx.query(
    sql`update data_request set refused_due_at = ${dueAt} where id = ${id} and status = ${pending}`,
  );
}

/** Locks open requests that were refused and whose refusal is due to be announced. */
export async function lockRefused(tx: Queryable, now: number, limit: number): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select id from data_request
      where refused_due_at <= ${now} and status = 'pending_approval'
      order by refused_due_at limit ${limit} for update skip locked`,
  );
  return rows.map(({ id }) => id);
}

/** Records that enough members have approved; a process that releases is woken when the transaction commits. */
export async function markApproved(tx: Queryable, id: string, now: number): Promise<void> {
  await tx.query(
    sql`with approved as (
        update data_request set approved_at = ${now} where id = ${id} and status = ${pending} returning id)
      select pg_notify('kyb_release', '') from approved`,
  );
}

/** Makes an approved request wait for approval again. */
export async function clearApproval(tx: Queryable, id: string): Promise<void> {
  await tx.query(sql`update data_request set approved_at = null where id = ${id}`);
}

/** Locks the request that was approved first and is not released yet. @param except ids of requests to skip */
export async function lockApproved(
  tx: Queryable,
  except: readonly string[],
): Promise<DataRequest | null> {
  const [row] = await tx.query<DataRequest>(
    sql`select ${requestColumns} from data_request
      where approved_at is not null and status = 'pending_approval' and id <> all(${[...except]})
      order by approved_at limit 1 for update skip locked`,
  );
  return row ?? null;
}

import type { Address, Hex32 } from "@svc/protocol";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import { lastUlid } from "../../platform/ids.ts";
import type { SignatureReason, SignatureRequest, SignatureStatus } from "./signature-request.ts";

const requestColumns = columns`
  id, client_domain_id as "clientDomainId", organization_id as "organizationId", environment, business,
  message_kind as "messageKind", '0x' || encode(digest, 'hex') as digest, purpose, status, reason, sequence,
  created_at as "createdAt", expires_at as "expiresAt", recordings,
  '0x' || encode(transaction_hash, 'hex') as "transactionHash", signed_at as "signedAt"`;

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const pending = "pending_approval";

export async function insertRequest(
  tx: Queryable,
  request: SignatureRequest,
  documentSealed: Buffer,
): Promise<void> {
  await tx.query(
    sql`insert into signature_request (id, client_domain_id, organization_id, environment, business, message_kind,
        document_sealed, digest, purpose, status, sequence, created_at, expires_at)
      values (${request.id}, ${request.clientDomainId}, ${request.organizationId}, ${request.environment},
        ${request.business}, ${request.messageKind}, ${documentSealed}, ${bufferOfHex(request.digest)}, ${request.purpose},
        ${request.status}, ${request.sequence}, ${request.createdAt}, ${request.expiresAt})`,
  );
}

export async function findRequest(db: Queryable, id: string): Promise<SignatureRequest | null> {
  const [row] = await db.query<SignatureRequest>(
    sql`select ${requestColumns} from signature_request where id = ${id}`,
  );
  return row ?? null;
}

/** Newest first. @param page.before lists requests before this id */
export async function listRequests(
  db: Queryable,
  clientDomainId: string,
  page: { status: string | null; before: string | null; limit: number },
): Promise<SignatureRequest[]> {
  const { status, before, limit } = { ...page, before: page.before ?? lastUlid };
  // Two statements, because a single one would have one plan, which reads every request of the client domain.
  return db.query<SignatureRequest>(
    status === null
      ? sql`select ${requestColumns} from signature_request
          where client_domain_id = ${clientDomainId} and id < ${before}
          order by id desc limit ${limit}`
      : sql`select ${requestColumns} from signature_request
          where client_domain_id = ${clientDomainId} and status = ${status} and id < ${before}
          order by id desc limit ${limit}`,
  );
}

/** Those of the documents that were not purged, sealed. */
export async function listDocuments(
  db: Queryable,
  ids: readonly string[],
): Promise<{ id: string; documentSealed: Buffer; digest: Buffer; purpose: string }[]> {
  return db.query(
    sql`select id, document_sealed as "documentSealed", digest, purpose from signature_request
      where id = any(${[...ids]}) and document_sealed is not null`,
  );
}

/**
 * Ends an open request and advances the sequence of its events. Does not cancel a request that members have approved:
 * its transaction is under way, and would record the signature nevertheless.
 *
 * @returns null if it has ended already
 */
export async function endRequest(
  tx: Queryable,
  ended: {
    id: string;
    status: Exclude<SignatureStatus, "pending_approval" | "signed">;
    reason: SignatureReason | null;
    now: number;
  },
): Promise<SignatureRequest | null> {
  const [row] = await tx.query<SignatureRequest>(
    sql`update signature_request set status = ${ended.status}, reason = ${ended.reason}, ended_at = ${ended.now},
        sequence = sequence + 1, has_failed_recording = false
      where id = ${ended.id} and status = ${pending}
        and (approved_at is null or ${ended.status} <> 'cancelled')
      returning ${requestColumns}`,
  );
  return row ?? null;
}

/** Records that enough members have refused, which is announced later. */
export async function putOffRefusal(tx: Queryable, id: string, dueAt: number): Promise<void> {
  await tx.query(
    sql`update signature_request set refused_due_at = ${dueAt} where id = ${id} and status = ${pending}`,
  );
}

/** Locks open requests that were refused and whose refusal is due to be announced. */
export async function lockRefused(tx: Queryable, now: number, limit: number): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select id from signature_request
      where refused_due_at <= ${now} and status = 'pending_approval'
      order by refused_due_at limit ${limit} for update skip locked`,
  );
  return rows.map(({ id }) => id);
}

/**
 * Records that enough members have approved, and counts a recording.
 *
 * @returns how many recordings there are, including this one; null if the request has ended
 */
export async function beginRecording(
  tx: Queryable,
  id: string,
  now: number,
): Promise<number | null> {
  const [row] = await tx.query<{ recordings: number }>(
    sql`update signature_request set approved_at = ${now}, recordings = recordings + 1, has_failed_recording = false
      where id = ${id} and status = ${pending} returning recordings`,
  );
  return row?.recordings ?? null;
}

/** @returns false if the request has ended, or another process has resolved this recording */
export async function takeFailedRecording(
  tx: Queryable,
  of: Pick<SignatureRequest, "id" | "recordings">,
): Promise<boolean> {
  const rows = await tx.query(
    sql`update signature_request set approved_at = null, has_failed_recording = false
      where id = ${of.id} and recordings = ${of.recordings} and has_failed_recording and status = 'pending_approval'
      returning 1 as taken`,
  );
  return rows.length === 1;
}

/** Records that the chain has the signature. @returns null if the request has ended */
export async function markSigned(
  tx: Queryable,
  signed: { id: string; transactionHash: Hex32; at: number; now: number },
): Promise<SignatureRequest | null> {
  const [row] = await tx.query<SignatureRequest>(
    sql`update signature_request set status = 'signed', sequence = sequence + 1, ended_at = ${signed.now},
        signed_at = ${signed.at}, transaction_hash = ${bufferOfHex(signed.transactionHash)}, has_failed_recording = false
      where id = ${signed.id} and status = ${pending}
      returning ${requestColumns}`,
  );
  return row ?? null;
}

/** The businesses of these requests, by address. */
export async function listBusinessesOf(tx: Queryable, ids: readonly string[]): Promise<Address[]> {
  const rows = await tx.query<{ business: Address }>(
    sql`select distinct business from signature_request where id = any(${ids}::text[]) order by business`,
  );
  return rows.map(({ business }) => business);
}

export async function noteFailedRecordings(
  tx: Queryable,
  failed: readonly { id: string; block: number }[],
): Promise<void> {
  await tx.query(
    sql`update signature_request set has_failed_recording = true, failed_block = given.block
      from unnest(${failed.map(({ id }) => id)}::text[], ${failed.map(({ block }) => block)}::bigint[])
        as given (id, block)
      where signature_request.id = given.id and status = ${pending}`,
  );
}

/** Requests whose last recording was reverted, by id, with the block in which that happened. */
export async function listFailedRecordings(
  db: Queryable,
  { after, limit }: { after: string; limit: number },
): Promise<(SignatureRequest & { failedBlock: number })[]> {
  return db.query<SignatureRequest & { failedBlock: number }>(
    sql`select ${requestColumns}, coalesce(failed_block, 0) as "failedBlock"
      from signature_request where has_failed_recording and id > ${after} order by id limit ${limit}`,
  );
}

/**
 * Deletes documents of requests that ended before a time; the digest still says what was signed.
 *
 * @returns how many were deleted
 */
export async function purgeDocuments(
  db: Queryable,
  before: number,
  limit: number,
): Promise<number> {
  const rows = await db.query(sql`
    update signature_request set document_sealed = null where id = any(array(
      select id from signature_request where document_sealed is not null and ended_at < ${before} order by ended_at limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}

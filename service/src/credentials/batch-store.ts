import type { Address, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";

export type BatchKind = "attest" | "revoke";

/** Roots of one issuer that are due to be attested or revoked on chain, oldest first, locked. */
export interface WaitingRoots {
  readonly issuerId: string;
  readonly address: Address;
  readonly roots: readonly Hex32[];
}

interface WaitingRow {
  issuer_id: string;
  address: Address;
  root: Hex32;
}

/** Whether there is any root, role or distrust to write to the chain. */
export async function hasWaitingRoots(
  db: Queryable,
  { now, operator }: { now: number; operator: Address },
): Promise<boolean> {
  const [row] = await db.query<{ waits: boolean }>(
    sql`select exists (
        select 1 from issuer cross join lateral (
          select 1 from credential
          where issuer_id = issuer.id and attest_batch_id is null and ended_at is null and attest_due_at <= ${now}
          order by credential.created_at limit 1) as waiting
        where role_granted_at is not null
      ) or exists (
        select 1 from credential_revocation where batch_id is null and due_at <= ${now}
      ) or exists (
        select 1 from issuer where (role_requested_at is null and role_due_at <= ${now})
          or (role_requested_at is not null and role_account is distinct from ${operator})
          or (distrusted_from is distinct from distrust_sent_from and distrust_due_at <= ${now})
      ) as waits`,
  );
  return row?.waits === true;
}

/**
 * Locks the oldest due roots of credentials whose issuer has its role, except those that another process has locked.
 * They are found issuer by issuer: without that, each batch would read and sort everything that waits.
 */
export async function lockUnattested(
  tx: Queryable,
  { limit, now }: { limit: number; now: number },
): Promise<WaitingRoots[]> {
  const rows = await tx.query<WaitingRow>(
    sql`with oldest as (
        select waiting.id from issuer cross join lateral (
          select id, created_at from credential
          where issuer_id = issuer.id and attest_batch_id is null and ended_at is null and attest_due_at <= ${now}
          order by credential.created_at limit ${limit}) as waiting
        where role_granted_at is not null order by waiting.created_at limit ${limit}
      )
      select issuer_id, address, '0x' || encode(root, 'hex') as root
      from credential join issuer on issuer.id = issuer_id
      where credential.id = any(array(select id from oldest)) and (attest_batch_id is null) = ${true}
        and ended_at is null
      order by credential.created_at for update of credential skip locked`,
  );
  return byIssuer(rows);
}

export async function lockUnrevoked(
  tx: Queryable,
  { limit, now }: { limit: number; now: number },
): Promise<WaitingRoots[]> {
  const rows = await tx.query<WaitingRow>(
    sql`select issuer_id, address, '0x' || encode(root, 'hex') as root
      from credential_revocation join issuer on issuer.id = issuer_id
      where batch_id is null and due_at <= ${now}
      order by credential_revocation.created_at limit ${limit} for update of credential_revocation skip locked`,
  );
  return byIssuer(rows);
}

function byIssuer(rows: readonly WaitingRow[]): WaitingRoots[] {
  const groups = Map.groupBy(rows, (row) => row.issuer_id);
  return Array.from(groups, ([issuerId, group]) => ({
    issuerId,
    address: group[0]?.address ?? "0x",
    roots: group.map((row) => row.root),
  }));
}

export async function insertBatch(
  tx: Queryable,
  batch: { id: string; kind: BatchKind; issuerId: string; roots: readonly Hex32[]; now: number },
): Promise<void> {
  const roots = batch.roots.map(bufferOfHex);
  await tx.query(
    sql`insert into credential_batch (id, kind, issuer_id, created_at)
      values (${batch.id}, ${batch.kind}, ${batch.issuerId}, ${batch.now})`,
  );
  if (batch.kind === "attest")
    await tx.query(
      sql`update credential set attest_batch_id = ${batch.id} where root = any(${roots}::bytea[])`,
    );
  else
    await tx.query(
      sql`update credential_revocation set batch_id = ${batch.id} where root = any(${roots}::bytea[])`,
    );
}

/** A batch whose transaction is final. */
export interface FinalBatch {
  readonly id: string;
  readonly hash: Hex32;
  readonly blockTime: number;
}

async function finishBatches(tx: Queryable, done: readonly FinalBatch[]): Promise<void> {
  await tx.query(
    sql`update credential_batch set transaction_hash = done.hash, finished_at = done.at
      from unnest(${done.map(({ id }) => id)}::uuid[], ${done.map(({ hash }) => bufferOfHex(hash))}::bytea[],
        ${done.map(({ blockTime }) => blockTime)}::bigint[]) as done (id, hash, at)
      where credential_batch.id = done.id`,
  );
}

/** Records that these batches are final; from now on their credentials are valid. */
export async function finishAttested(tx: Queryable, done: readonly FinalBatch[]): Promise<void> {
  await finishBatches(tx, done);
  await tx.query(
    sql`update credential set attested_at = done.at
      from unnest(${done.map(({ id }) => id)}::uuid[], ${done.map(({ blockTime }) => blockTime)}::bigint[])
        as done (id, at)
      where attest_batch_id = done.id and attested_at is null`,
  );
}

export async function finishRevoked(tx: Queryable, done: readonly FinalBatch[]): Promise<void> {
  await finishBatches(tx, done);
  await tx.query(
    sql`delete from credential_revocation where batch_id = any(${done.map(({ id }) => id)}::uuid[])`,
  );
}

/**
 * Releases the roots of these batches, so that a later batch takes them after a pause.
 *
 * @param given.pauses seconds after the first failure, the second, and so on; the last pause is repeated
 */
export async function releaseBatches(
  tx: Queryable,
  given: { ids: readonly string[]; pauses: readonly number[]; now: number },
): Promise<void> {
  const { ids, pauses, now } = given;
  await tx.query(
    sql`update credential set attest_batch_id = null, attest_failures = attest_failures + 1,
        attest_due_at = ${now} + (${pauses}::bigint[])[least(attest_failures + 1, ${pauses.length})]
      where attest_batch_id = any(${ids}::uuid[]) and attested_at is null`,
  );
  await tx.query(
    sql`update credential_revocation set batch_id = null, failures = failures + 1,
        due_at = ${now} + (${pauses}::bigint[])[least(failures + 1, ${pauses.length})]
      where batch_id = any(${ids}::uuid[])`,
  );
}

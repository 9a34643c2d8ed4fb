import { type Address, type Hex32, hexOfBytes } from "@svc/protocol";
import { advisoryLocks } from "../platform/database/advisory-locks.ts";
import { columns, type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex, joinHashes } from "../platform/hex.ts";
import type { Anchor, AuditHead, Phase } from "./settlement-batch.ts";

/** What there is to settle now. */
export interface Backlog {
  /** Approved orders that are in no batch yet; counted up to the limit. */
  readonly unbatched: number;
  /** When the first of them was approved, Unix seconds. */
  readonly oldestApprovedAt: number | null;
  /** Whether orders wait for their data to be handed over. */
  readonly hasInitiated: boolean;
}

export async function readBacklog(db: Queryable, limit: number): Promise<Backlog> {
  const [row] = await db.query<Backlog>(
    sql`select count(*) as unbatched, min(approved_at) as "oldestApprovedAt",
        exists (select 1 from kyc_order where status = 'INITIATED') as "hasInitiated"
      from (
        select approved_at from kyc_order where status = 'INITIATING' and initiate_batch_id is null
        order by approved_at limit ${limit}
      ) as waiting`,
  );
  return row ?? { unbatched: 0, oldestApprovedAt: null, hasInitiated: false };
}

/** Since when (Unix seconds) the oldest order waits that is approved and not handed over; null if there is none. */
export async function findOldestWaitingSince(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ since: number | null }>(
    sql`select least(
        (select min(approved_at) from kyc_order where status = 'INITIATING'),
        (select min(status_at) from kyc_order where status = 'INITIATED')) as since`,
  );
  return row?.since ?? null;
}

/** Only one process at a time makes initiate batches: several would spread the waiting orders over several batches. */
export async function tryLockBatches(tx: Queryable): Promise<boolean> {
  const [row] = await tx.query<{ is_ours: boolean }>(
    sql`select pg_try_advisory_xact_lock(${advisoryLocks.settlementBatches}) as is_ours`,
  );
  return row?.is_ours === true;
}

/**
 * Keeps leaves from being invalidated until the end of this transaction. Any number of transactions may hold this lock
 * at once.
 */
export async function lockHandOverShared(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock_shared(${advisoryLocks.handOver})`);
}

/** Waits for the hand-overs under way, and keeps others from beginning until the end of this transaction. */
export async function lockHandOver(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.handOver})`);
}

/** The members of an {@link Anchor} beside its id and attempt, from an order and its consent. */
const anchorColumns = columns`
  encode(reference_key, 'hex') as "referenceKey", '0x' || encode(kyc_consent.salt, 'hex') as salt,
  '0x' || encode(consent, 'hex') as consent, '0x' || encode(data_hash, 'hex') as data`;

/** Approved orders that are in no batch, oldest first, locked. */
export async function takeUnbatched(tx: Queryable, limit: number): Promise<Anchor[]> {
  return tx.query<Anchor>(
    sql`select kyc_order.id, kyc_order.attempt, ${anchorColumns}
      from kyc_order
        join kyc_consent on kyc_consent.order_id = kyc_order.id and kyc_consent.attempt = kyc_order.attempt
      where status = 'INITIATING' and initiate_batch_id is null
      order by approved_at limit ${limit}
      for update of kyc_order skip locked`,
  );
}

export interface NewBatch {
  readonly id: string;
  readonly phase: Phase;
  readonly root: Hex32;
  readonly leaves: readonly Hex32[];
  readonly audit: AuditHead;
  readonly orderIds: readonly string[];
  readonly at: number;
}

/** Inserts a batch and its leaves, and assigns the orders to it. */
export async function insertBatch(tx: Queryable, batch: NewBatch): Promise<void> {
  const isInitiate = batch.phase === "initiate";
  await tx.query(
    sql`with made as (
        insert into kyc_batch (id, phase, root, audit_head, audit_position, created_at)
        values (${batch.id}, ${batch.phase}, ${bufferOfHex(batch.root)}, ${batch.audit.hash}, ${batch.audit.position},
          ${batch.at})
      ), kept as (
        insert into kyc_batch_leaves (batch_id, leaves) values (${batch.id}, ${joinHashes(batch.leaves)})
      )
      update kyc_order set
        initiate_batch_id = case when ${isInitiate} then ${batch.id}::uuid else initiate_batch_id end,
        confirm_batch_id = case when ${isInitiate} then null else ${batch.id}::uuid end
      where id = any(${batch.orderIds}::uuid[])`,
  );
}

export interface FinalBatch {
  readonly id: string;
  readonly hash: Hex32;
  /** The account that sent it. */
  readonly operator: Address;
  readonly blockNumber: number;
  readonly blockTime: number;
}

/** Records the transactions that anchored the batches. */
export async function noteFinal(tx: Queryable, batches: readonly FinalBatch[]): Promise<void> {
  await tx.query(
    sql`update kyc_batch set transaction_hash = decode(substr(final.hash, 3), 'hex'),
        operator = final.operator, block_number = final.block_number, block_time = final.block_time
      from unnest(${batches.map(({ id }) => id)}::uuid[], ${batches.map(({ hash }) => hash)}::text[],
        ${batches.map(({ operator }) => operator)}::text[],
        ${batches.map(({ blockNumber }) => blockNumber)}::bigint[],
        ${batches.map(({ blockTime }) => blockTime)}::bigint[]) as final (id, hash, operator, block_number, block_time)
      where kyc_batch.id = final.id`,
  );
}

/** An order in a certain attempt. */
export interface OrderAttempt {
  readonly id: string;
  readonly attempt: number;
}

/**
 * The orders that wait for these batches of a phase, by batch. Each batch then updates its packages in a statement of
 * its own; to avoid deadlocks the packages of all batches are locked here, in the order of their ids.
 */
export async function listWaiting(
  tx: Queryable,
  phase: Phase,
  batchIds: readonly string[],
): Promise<Map<string, OrderAttempt[]>> {
  const list = phase === "initiate" ? listInitiating : listConfirming;
  const rows = await list(tx, batchIds);
  if (batchIds.length > 1) await lockPackages(tx, [...new Set(rows.map((row) => row.package_id))]);
  return Map.groupBy(rows, (row) => row.batch_id);
}

/** The status is a literal so that the partial index of waiting orders fits; a move checks it again. */
type WaitingRow = OrderAttempt & { batch_id: string; package_id: string };

async function listInitiating(tx: Queryable, batchIds: readonly string[]): Promise<WaitingRow[]> {
  return tx.query(
    sql`select initiate_batch_id as batch_id, id, attempt, package_id from kyc_order
      where status = 'INITIATING' and initiate_batch_id = any(${batchIds}::uuid[])`,
  );
}

async function listConfirming(tx: Queryable, batchIds: readonly string[]): Promise<WaitingRow[]> {
  return tx.query(
    sql`select confirm_batch_id as batch_id, id, attempt, package_id from kyc_order
      where status = 'CONFIRMING' and confirm_batch_id = any(${batchIds}::uuid[])`,
  );
}

async function lockPackages(tx: Queryable, ids: readonly string[]): Promise<void> {
  await tx.query(
    sql`select id from kyc_package where id = any(${ids}::uuid[]) order by id for update`,
  );
}

/** An order whose initiate transaction is final, with the data to be handed over. */
export interface InitiatedOrder extends Anchor {
  /** Since when it is INITIATED, Unix seconds. */
  readonly initiatedAt: number;
  readonly leaves: readonly Hex32[];
  /** Sealed `infos`; null if they are gone, and then the order fails. */
  readonly sealed: Buffer | null;
}

interface InitiatedRow extends Omit<InitiatedOrder, "leaves"> {
  readonly leaves: readonly Buffer[];
  readonly taken: number;
  readonly hasWholeShare: boolean;
}

/**
 * Takes and locks orders to hand over, in rounds over the organizations, oldest first: no organization waits until all
 * orders of another are done. At most `limit` in equal shares, and no more bytes than `bytesMax`, but at least one
 * order.
 *
 * @param given.except ids of orders to skip
 */
export async function takeInitiated(
  tx: Queryable,
  { limit, bytesMax, except }: { limit: number; bytesMax: number; except: readonly string[] },
): Promise<{ orders: InitiatedOrder[]; hasMore: boolean }> {
  const rows = await tx.query<InitiatedRow>(
    sql`with recursive organization as (
        (select organization_id as id from kyc_order where status = 'INITIATED' order by organization_id limit 1)
        union all
        select (select organization_id from kyc_order where status = 'INITIATED' and organization_id > organization.id
          order by organization_id limit 1)
        from organization where organization.id is not null
      ), share as (
        select ceil(${limit}::numeric / greatest(1, count(id)))::bigint as size from organization
      ), taken as (
        select oldest.*, row_number() over (partition by organization.id order by status_at, oldest.id) as turn
        from organization cross join lateral (
          select id, attempt, reference_key, status_at from kyc_order
          where status = 'INITIATED' and organization_id = organization.id and kyc_order.id <> all(${except}::uuid[])
          order by status_at limit (select size from share)
          for update skip locked) as oldest
      ), measured as (
        select taken.*, sum(coalesce(octet_length(sealed), 0)) over (order by turn, status_at, id) as bytes_so_far,
          row_number() over (order by turn, status_at, id) as place
        from taken left join kyc_payload on kyc_payload.order_id = taken.id
      )
      select measured.id, measured.attempt, ${anchorColumns}, status_at as "initiatedAt", leaves, sealed,
        (select count(*) from taken) as taken,
        exists (select from taken join share on turn = size) as "hasWholeShare"
      from measured
        join kyc_consent on kyc_consent.order_id = measured.id and kyc_consent.attempt = measured.attempt
        left join kyc_payload on kyc_payload.order_id = measured.id
      where place <= ${limit} and (place = 1 or bytes_so_far <= ${bytesMax})
      order by place`,
  );
  const orders = rows.map((row) => {
    const { leaves, taken: _, hasWholeShare: __, ...order } = row;
    return { ...order, leaves: leaves.map((leaf) => hexOfBytes(leaf)) };
  });
  const [first] = rows;
  const hasMore = first !== undefined && (first.taken > orders.length || first.hasWholeShare);
  return { orders, hasMore };
}

/**
 * Records that the data of these attempts was handed over, so that the organization is told when it no longer holds.
 * Deletes the sealed copy.
 */
export async function noteHandedOver(
  tx: Queryable,
  given: readonly Anchor[],
  at: number,
): Promise<void> {
  await tx.query(
    sql`with forgotten as (
        delete from kyc_payload where order_id = any(${given.map(({ id }) => id)}::uuid[])
      )
      update kyc_consent set delivered_at = ${at}
      from unnest(${given.map(({ id }) => id)}::uuid[], ${given.map(({ attempt }) => attempt)}::integer[])
        as given (order_id, attempt)
      where kyc_consent.order_id = given.order_id and kyc_consent.attempt = given.attempt`,
  );
}

/** Locks orders approved at or before this time (Unix seconds) that are still not initiated. */
export async function takeOverdue(
  tx: Queryable,
  { before, limit }: { before: number; limit: number },
): Promise<OrderAttempt[]> {
  return tx.query(
    sql`select id, attempt from kyc_order where status = 'INITIATING' and approved_at <= ${before}
      order by approved_at limit ${limit}
      for update skip locked`,
  );
}

/** Wakes the settlement of every process once this transaction commits. */
export async function wakeSettlement(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_notify('kyc_settlement', '')`);
}

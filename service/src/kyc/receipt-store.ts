import {
  type Address,
  type FieldName,
  type Hex,
  type Hex32,
  hexOfBytes,
  type ShareMessage,
} from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { splitHashes } from "../platform/hex.ts";
import { isReferenceKey } from "./order.ts";

/** A final batch, and the transaction that anchored it. */
export interface SettledBatch {
  readonly id: string;
  readonly root: Hex32;
  readonly operator: Address;
  readonly transactionHash: Hex32;
  readonly blockNumber: number;
  readonly blockTime: number;
}

/** An attempt of an order whose consent is anchored. */
export interface SettledOrder {
  readonly referenceKey: string;
  readonly attempt: number;
  readonly environment: Environment;
  readonly user: Address;
  readonly salt: Hex32;
  readonly requestObject: string;
  readonly share: Omit<ShareMessage, "object" | "fields">;
  readonly consent: Hex32;
  readonly signature: Hex;
  readonly fields: readonly FieldName[];
  /** In the order of the fields. */
  readonly leaves: readonly Hex32[];
  readonly initiate: SettledBatch;
  readonly confirm: SettledBatch | null;
}

type SettledRow = Omit<SettledOrder, "share" | "leaves"> &
  Omit<SettledOrder["share"], "request"> & { readonly leaves: readonly Buffer[] };

/**
 * The given attempt of an order, or by default the newest, whose initiate transaction is final. Its batches are found
 * by the transaction hashes in the history, since the order's own row knows only those of its latest attempt.
 */
export async function findSettled(
  db: Queryable,
  orderId: string,
  attempt: number | null,
): Promise<SettledOrder | null> {
  const [row] = await db.query<SettledRow>(
    sql`with settled as (
        select transaction_hash, jsonb_build_object('id', id, 'root', '0x' || encode(root, 'hex'),
          'operator', operator, 'transactionHash', '0x' || encode(transaction_hash, 'hex'),
          'blockNumber', block_number, 'blockTime', block_time) as batch
        from kyc_batch
        where transaction_hash in (
          select initiated_tx_hash from kyc_order_status where order_id = ${orderId} and status = 'INITIATED'
          union all
          select confirm_tx_hash from kyc_order_status where order_id = ${orderId} and status = 'CONFIRMED')
      )
      select encode(reference_key, 'hex') as "referenceKey", kyc_consent.attempt, environment, user_address as "user",
        '0x' || encode(kyc_consent.salt, 'hex') as salt, request_object as "requestObject", connection, requester,
        deadline, '0x' || encode(consent, 'hex') as consent, '0x' || encode(data_hash, 'hex') as data,
        '0x' || encode(signature, 'hex') as signature, fields, leaves, initiate.batch as initiate,
        confirm.batch as confirm
      from kyc_consent
        join kyc_order on kyc_order.id = kyc_consent.order_id
        join kyc_order_status as initiated on initiated.order_id = kyc_consent.order_id
          and initiated.attempt = kyc_consent.attempt and initiated.status = 'INITIATED'
        join settled as initiate on initiate.transaction_hash = initiated.initiated_tx_hash
        left join kyc_order_status as confirmed on confirmed.order_id = kyc_consent.order_id
          and confirmed.attempt = kyc_consent.attempt and confirmed.status = 'CONFIRMED'
        left join settled as confirm on confirm.transaction_hash = confirmed.confirm_tx_hash
      where kyc_consent.order_id = ${orderId}
        and (${attempt}::integer is null or kyc_consent.attempt = ${attempt})
      order by kyc_consent.attempt desc limit 1`,
  );
  return row === undefined ? null : toSettled(row);
}

function toSettled(row: SettledRow): SettledOrder {
  const { connection, requester, data, deadline, leaves, ...order } = row;
  return {
    ...order,
    share: { request: order.referenceKey, connection, requester, data, deadline },
    leaves: leaves.map((leaf) => hexOfBytes(leaf)),
  };
}

export async function readLeaves(db: Queryable, batchId: string): Promise<Hex32[]> {
  const [row] = await db.query<{ leaves: Buffer }>(
    sql`select leaves from kyc_batch_leaves where batch_id = ${batchId}`,
  );
  if (row === undefined) throw new Error("the leaves of a batch are kept as long as the batch");
  return splitHashes(row.leaves);
}

/** The id of an order of this user, whoever asked for it; null also for a malformed key. */
export async function findOrderIdOf(
  db: Queryable,
  user: Address,
  referenceKey: string,
): Promise<string | null> {
  if (!isReferenceKey(referenceKey)) return null;
  const [row] = await db.query<{ id: string }>(
    sql`select id from kyc_order
      where reference_key = ${Buffer.from(referenceKey, "hex")} and user_address = ${user}`,
  );
  return row?.id ?? null;
}

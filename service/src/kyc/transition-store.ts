import type { Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";
import type { Step } from "./order.ts";
import type { Order } from "./order-row.ts";
import { orderColumns } from "./order-store.ts";

/** The same transition for any number of orders. */
export interface Move {
  /** With the attempt for which the transition was decided: an order that is in a later attempt does not move. */
  readonly orders: readonly { readonly id: string; readonly attempt: number }[];
  readonly step: Step;
  /** Unix seconds. */
  readonly at: number;
  readonly initiatedTxHash?: Hex32;
  readonly confirmTxHash?: Hex32;
  /** How many further events of each order follow the one of its new status. Default: 0. */
  readonly following?: number;
}

const bytea = (hash: Hex32 | undefined): Buffer | null =>
  hash === undefined ? null : bufferOfHex(hash);

/**
 * Moves those of the orders that still have the step's `from`, writes their history and settles their transfers:
 * CONFIRMED spends the held transfer, FAILED releases it and deletes values that were not handed over yet. Locks
 * orders, then packages, in the order of their ids; a second call in one transaction that ends orders could deadlock
 * with another, unless the packages were locked before.
 *
 * @returns the orders that moved, as they are now
 */
export async function moveRows(tx: Queryable, move: Move): Promise<Order[]> {
  const { from, to, failureReason } = move.step;
  const following = move.following ?? 0;
  const isEnd = to === "CONFIRMED" || to === "FAILED";
  return tx.query<Order>(
    sql`with locked as (
        select kyc_order.id from kyc_order
          join unnest(${move.orders.map(({ id }) => id)}::uuid[], ${move.orders.map(({ attempt }) => attempt)}::integer[])
            as given (id, attempt) on given.id = kyc_order.id and given.attempt = kyc_order.attempt
        where status = ${from}
        order by kyc_order.id
        for update of kyc_order
      ), moved as (
        update kyc_order set status = ${to}, status_at = ${move.at}, failure_reason = ${failureReason ?? null},
          sequence = sequence + 1 + ${following},
          approved_at = case when ${to} = 'INITIATING' then ${move.at} else approved_at end,
          initiated_tx_hash = coalesce(${bytea(move.initiatedTxHash)}, initiated_tx_hash),
          confirm_tx_hash = coalesce(${bytea(move.confirmTxHash)}, confirm_tx_hash)
        from locked where kyc_order.id = locked.id
        returning kyc_order.*
      ), history as (
        insert into kyc_order_status (order_id, sequence, attempt, status, created_at, initiated_tx_hash,
          confirm_tx_hash, failure_reason)
        select id, sequence - ${following}, attempt, status, status_at, initiated_tx_hash, confirm_tx_hash, failure_reason
        from moved
      ), forgotten as (
        delete from kyc_payload where ${to} = 'FAILED' and order_id = any(array(select id from moved))
      ), packages as (
        select id from kyc_package where ${isEnd} and id in (select package_id from moved) order by id for update
      ), counted as (
        update kyc_package set transfers_held = transfers_held - ended.count,
          transfers_consumed = transfers_consumed + case when ${to} = 'CONFIRMED' then ended.count else 0 end
        from (
          select package_id, count(*)::integer as count from moved join packages on packages.id = package_id
          group by package_id
        ) as ended
        where kyc_package.id = ended.package_id
      )
      select ${orderColumns} from moved as kyc_order`,
  );
}

/** Counts one more event of these orders, without a change of status. @returns the orders as they are now */
export async function addSequence(tx: Queryable, orderIds: readonly string[]): Promise<Order[]> {
  return tx.query<Order>(
    sql`with held as (select id from kyc_order where id = any(${orderIds}::uuid[]) order by id for update)
      update kyc_order set sequence = sequence + 1 where id = any(array(select id from held))
      returning ${orderColumns}`,
  );
}

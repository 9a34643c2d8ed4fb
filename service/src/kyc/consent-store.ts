import type { Hex32 } from "@svc/protocol";
import type { AskedName } from "../credentials/index.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";
import type { Order } from "./order-row.ts";
import { orderColumns } from "./order-store.ts";

/** A link with its order. */
export interface OrderLink {
  readonly tokenSha256: Buffer;
  readonly order: Order;
  /** The attempt of the order that the link belongs to; the order may be in a later one. */
  readonly attempt: number;
  readonly expiration: number;
  readonly callback: string;
  readonly requester: string;
  readonly offered: readonly AskedName[];
  readonly requestObject: string | null;
  readonly organizationName: string;
  /** The signature of the consent that approved this attempt, if it was approved. */
  readonly approvedSignature: Buffer | null;
}

/** The row of a link: members that the order has too have the prefix `link`. */
type LinkRow = Omit<OrderLink, "tokenSha256" | "order" | "attempt" | "expiration" | "callback"> &
  Order & { linkAttempt: number; linkExpiration: number; linkCallback: string };

/** The `offset 0` makes PostgreSQL find the link by its primary key before it joins anything. */
export async function findLink(db: Queryable, tokenSha256: Buffer): Promise<OrderLink | null> {
  const [row] = await db.query<LinkRow>(
    sql`select ${orderColumns}, kyc_token.attempt as "linkAttempt", kyc_token.expiration as "linkExpiration",
        kyc_token.callback as "linkCallback", kyc_token.requester, kyc_token.offered,
        kyc_token.request_object as "requestObject", organization.name as "organizationName",
        kyc_consent.signature as "approvedSignature"
      from (select * from kyc_token where token_sha256 = ${tokenSha256} offset 0) as kyc_token
        join kyc_order on kyc_order.id = kyc_token.order_id
        join organization on organization.id = kyc_order.organization_id
        left join kyc_consent on kyc_consent.order_id = kyc_order.id and kyc_consent.attempt = kyc_token.attempt`,
  );
  if (row === undefined) return null;
  const { linkAttempt, linkExpiration, linkCallback, requester, offered, ...more } = row;
  const { requestObject, organizationName, approvedSignature, ...order } = more;
  return {
    tokenSha256,
    order,
    attempt: linkAttempt,
    expiration: linkExpiration,
    callback: linkCallback,
    requester,
    offered,
    requestObject,
    organizationName,
    approvedSignature,
  };
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const pending = "PENDING";

/**
 * Stores a link's request object, notes that the order was scanned, and deletes earlier links that were not opened. The
 * lock on the order makes concurrent calls for its links take turns.
 *
 * @returns the stored object, which may be another process's; null if a newer link ended this one, or the attempt is
 * over
 */
export async function keepRequestObject(
  db: Queryable,
  link: Pick<OrderLink, "tokenSha256" | "order" | "attempt">,
  { object, now }: { object: string; now: number },
): Promise<string | null> {
  const [row] = await db.query<{ request_object: string }>(
    sql`with scanned as (
        update kyc_order set scanned_at = coalesce(scanned_at, ${now})
        where id = ${link.order.id} and attempt = ${link.attempt} and status = ${pending} returning id
      ), kept as (
        update kyc_token set request_object = coalesce(request_object, ${object})
        where order_id = (select id from scanned) and token_sha256 = ${link.tokenSha256}
        returning request_object, number
      ), ended as (
        delete from kyc_token
        where order_id = ${link.order.id} and number < (select number from kept) and request_object is null
      )
      select request_object from kept`,
  );
  return row?.request_object ?? null;
}

/** What the user signed, and the sealed values. */
export interface NewConsent {
  readonly order: Pick<Order, "id" | "organizationId" | "user">;
  readonly attempt: number;
  readonly requestObject: string;
  readonly connection: string;
  readonly requester: string;
  readonly deadline: number;
  readonly fields: readonly string[];
  readonly leaves: readonly Hex32[];
  readonly signature: Buffer;
  readonly consent: Hex32;
  readonly data: Hex32;
  readonly payloadSealed: Buffer;
  readonly createdAt: number;
}

/** Stores the consent, the sealed values until they are handed over, and that user and organization know each other. */
export async function insertConsent(tx: Queryable, given: NewConsent): Promise<void> {
  const { order } = given;
  const leaves = given.leaves.map(bufferOfHex);
  await tx.query(
    sql`with consent as (
        insert into kyc_consent (order_id, attempt, request_object, connection, requester, deadline, fields, leaves,
          signature, consent, data_hash, salt, created_at)
        values (${order.id}, ${given.attempt}, ${given.requestObject}, ${given.connection}, ${given.requester},
          ${given.deadline}, ${given.fields}::text[], ${leaves}::bytea[], ${given.signature},
          ${bufferOfHex(given.consent)}, ${bufferOfHex(given.data)}, (select salt from kyc_order where id = ${order.id}),
          ${given.createdAt})
      ), acquainted as (
        insert into organization_user (organization_id, user_address, created_at)
        values (${order.organizationId}, ${order.user}, ${given.createdAt}) on conflict do nothing
      )
      insert into kyc_payload (order_id, sealed, created_at)
      values (${order.id}, ${given.payloadSealed}, ${given.createdAt})
      on conflict (order_id) do update set sealed = excluded.sealed, created_at = excluded.created_at`,
  );
}

/** Counts a mismatch of the attempt. @returns how many there are now; null if the attempt is over */
export async function countMismatch(
  tx: Queryable,
  { order, attempt }: Pick<OrderLink, "order" | "attempt">,
): Promise<number | null> {
  const [row] = await tx.query<{ mismatches: number }>(
    sql`update kyc_order set mismatches = mismatches + 1
      where id = ${order.id} and attempt = ${attempt} and status = ${pending} returning mismatches`,
  );
  return row?.mismatches ?? null;
}

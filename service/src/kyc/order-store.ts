import type { Address } from "@svc/protocol";
import type { AskedName } from "../credentials/index.ts";
import { columns, type Queryable, sql, type Statement } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";
import { bufferOfHex } from "../platform/hex.ts";
import { lastUuid } from "../platform/ids.ts";
import { isReferenceKey, type Status } from "./order.ts";
import type { Order, ReachedStatus } from "./order-row.ts";

/** The members of an {@link Order}, from the table or from a CTE that is aliased as `kyc_order`. */
export const orderColumns = columns`
  kyc_order.id, encode(kyc_order.reference_key, 'hex') as "referenceKey", kyc_order.package_id as "packageId",
  kyc_order.client_domain_id as "clientDomainId", kyc_order.organization_id as "organizationId",
  kyc_order.environment, kyc_order.user_address as "user", kyc_order.required, kyc_order.optional,
  kyc_order.attempt, kyc_order.status, kyc_order.status_at as "statusAt", kyc_order.scanned_at as "scannedAt",
  kyc_order.failure_reason as "failureReason", kyc_order.sequence, kyc_order.callback, kyc_order.expiration,
  kyc_order.reference, kyc_order.purpose, kyc_order.return_url as "returnUrl",
  kyc_order.created_at as "createdAt", kyc_order.mismatches, '0x' || encode(kyc_order.salt, 'hex') as salt,
  '0x' || encode(kyc_order.initiated_tx_hash, 'hex') as "initiatedTxHash",
  '0x' || encode(kyc_order.confirm_tx_hash, 'hex') as "confirmTxHash"`;

/** A package, as found by the Source Key of a request. */
export interface AskedPackage {
  readonly id: string;
  readonly clientDomainId: string;
  readonly fields: readonly string[] | null;
  /** Hosts that callbacks may have; null if any may. */
  readonly callbackHosts: readonly string[] | null;
}

export async function findAskedPackage(
  db: Queryable,
  sourceKey: string,
): Promise<AskedPackage | null> {
  const [row] = await db.query<AskedPackage>(
    sql`select kyc_package.id, client_domain_id as "clientDomainId", fields, callback_hosts as "callbackHosts"
      from kyc_package join client_domain on client_domain.id = kyc_package.client_domain_id
      where source_key = ${sourceKey}`,
  );
  return row ?? null;
}

/** A parameter in statements that find the row by its user, not a literal: {@link sql} says why. */
const company = "COMPANY";

const bytesOfKey = (referenceKey: string): Buffer => Buffer.from(referenceKey, "hex");

/** Null also for a malformed key. */
export async function findOrder(db: Queryable, referenceKey: string): Promise<Order | null> {
  if (!isReferenceKey(referenceKey)) return null;
  const [row] = await db.query<Order>(
    sql`select ${orderColumns} from kyc_order where reference_key = ${bytesOfKey(referenceKey)}`,
  );
  return row ?? null;
}

/** As {@link findOrder}, with the order locked until the transaction ends. */
export async function lockOrder(tx: Queryable, referenceKey: string): Promise<Order | null> {
  const [row] = await tx.query<Order>(
    sql`select ${orderColumns} from kyc_order where reference_key = ${bytesOfKey(referenceKey)} for update`,
  );
  return row ?? null;
}

/** A link that is given out. */
export interface NewLink {
  readonly tokenSha256: Buffer;
  readonly orderId: string;
  readonly attempt: number;
  readonly expiration: number;
  readonly callback: string;
  readonly requester: string;
  readonly offered: readonly string[];
  readonly createdAt: number;
}

export type NewOrder = Omit<
  Order,
  | "attempt"
  | "status"
  | "statusAt"
  | "scannedAt"
  | "failureReason"
  | "sequence"
  | "mismatches"
  | "initiatedTxHash"
  | "confirmTxHash"
>;

/**
 * Inserts a new order with its first history row. Holds a lock on a credential of the user, which a deletion of the
 * user has to wait for.
 *
 * @returns null if the order exists already, or the user has no credential any more
 */
export async function insertOrder(tx: Queryable, order: NewOrder): Promise<Order | null> {
  const [row] = await tx.query<Order>(
    sql`with held as materialized (
        select from credential where user_address = ${order.user} and document <> ${company} limit 1 for key share
      ), ordered as (
        insert into kyc_order (id, reference_key, package_id, client_domain_id, organization_id, environment,
          user_address, required, optional, status, status_at, sequence, callback, expiration, reference, purpose,
          return_url, created_at, salt)
        select ${order.id}::uuid, ${bytesOfKey(order.referenceKey)}::bytea, ${order.packageId}::uuid,
          ${order.clientDomainId}::uuid, ${order.organizationId}::uuid, ${order.environment}, ${order.user},
          ${order.required}::text[], ${order.optional}::text[], 'PENDING', ${order.createdAt}::bigint, 1,
          ${order.callback}, ${order.expiration}::bigint, ${order.reference}, ${order.purpose}, ${order.returnUrl},
          ${order.createdAt}::bigint, ${bufferOfHex(order.salt)}::bytea
        from held
        on conflict (reference_key) do nothing
        returning *
      ), history as (
        insert into kyc_order_status (order_id, sequence, attempt, status, created_at)
        select id, sequence, attempt, status, status_at from ordered
      )
      select ${orderColumns} from ordered as kyc_order`,
  );
  return row ?? null;
}

/**
 * Holds one transfer of a package. Call it last in a transaction: all orders of the package contend for this row.
 *
 * @returns false if none is left
 */
export async function holdTransfer(tx: Queryable, packageId: string): Promise<boolean> {
  const rows = await tx.query(
    sql`update kyc_package set transfers_held = transfers_held + 1
      where id = ${packageId} and transfers_held + transfers_consumed < transfers_total returning id`,
  );
  return rows.length === 1;
}

/** The parts of an existing order that a new request replaces. */
export type Renewal = Pick<
  Order,
  "id" | "callback" | "expiration" | "reference" | "purpose" | "returnUrl" | "salt"
>;

/** Begins the next attempt of an order that was locked and has ended. */
export async function beginAttempt(tx: Queryable, renewal: Renewal, now: number): Promise<Order> {
  const [row] = await tx.query<Order>(
    sql`with ordered as (
        update kyc_order set attempt = attempt + 1, status = 'PENDING', status_at = ${now}, failure_reason = null,
          sequence = sequence + 1, callback = ${renewal.callback}, expiration = ${renewal.expiration},
          reference = ${renewal.reference}, purpose = ${renewal.purpose}, return_url = ${renewal.returnUrl},
          scanned_at = null, mismatches = 0, salt = ${bufferOfHex(renewal.salt)},
          approved_at = null, initiate_batch_id = null, confirm_batch_id = null, initiated_tx_hash = null,
          confirm_tx_hash = null
        where id = ${renewal.id} and status in ('CONFIRMED', 'FAILED')
        returning *
      ), history as (
        insert into kyc_order_status (order_id, sequence, attempt, status, created_at)
        select id, sequence, attempt, status, status_at from ordered
      )
      select ${orderColumns} from ordered as kyc_order`,
  );
  if (row === undefined) throw new Error("the order was locked and has ended");
  return row;
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const pending = "PENDING";

/** Replaces callback and expiration of a PENDING order that the caller has locked. */
export async function renewPending(
  tx: Queryable,
  given: Pick<Renewal, "id" | "callback" | "expiration">,
): Promise<Order> {
  const [row] = await tx.query<Order>(
    sql`update kyc_order set callback = ${given.callback}, expiration = ${given.expiration}
      where id = ${given.id} and status = ${pending} returning ${orderColumns}`,
  );
  if (row === undefined) throw new Error("the order was locked and is PENDING");
  return row;
}

export async function insertLink(tx: Queryable, link: NewLink): Promise<void> {
  await tx.query(
    sql`insert into kyc_token (token_sha256, order_id, attempt, expiration, callback, requester, offered, created_at)
      values (${link.tokenSha256}, ${link.orderId}, ${link.attempt}, ${link.expiration}, ${link.callback},
        ${link.requester}, ${link.offered}::text[], ${link.createdAt})`,
  );
}

/** The newest link of an order; null if all of them were purged. */
export async function findNewestLink(
  db: Queryable,
  orderId: string,
): Promise<{ offered: AskedName[]; requester: string } | null> {
  const [row] = await db.query<{ offered: AskedName[]; requester: string }>(
    sql`select offered, requester from kyc_token where order_id = ${orderId} order by number desc limit 1`,
  );
  return row ?? null;
}

/** Locks PENDING orders that have expired; concurrent callers get different ones. */
export async function lockExpired(
  tx: Queryable,
  now: number,
  limit: number,
): Promise<{ id: string; attempt: number }[]> {
  return tx.query<{ id: string; attempt: number }>(
    sql`select id, attempt from kyc_order where status = 'PENDING' and expiration < ${now}
      order by expiration limit ${limit} for update skip locked`,
  );
}

/**
 * Ids of the PENDING orders of a client domain that have expired. The `offset 0` makes PostgreSQL find the expired ones
 * first: by client domain it would read every order that is waiting there.
 */
export async function listExpiredOf(
  db: Queryable,
  clientDomainId: string,
  now: number,
): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    sql`select id from (
        select id, client_domain_id from kyc_order where status = 'PENDING' and expiration < ${now} offset 0
      ) as expired
      where client_domain_id = ${clientDomainId}`,
  );
  return rows.map(({ id }) => id);
}

/** Locks those of the orders that are PENDING and have expired, by id to avoid deadlocks; waits for their locks. */
export async function lockExpiredAmong(
  tx: Queryable,
  ids: readonly string[],
  now: number,
): Promise<{ id: string; attempt: number }[]> {
  return tx.query<{ id: string; attempt: number }>(
    sql`select id, attempt from kyc_order
      where id = any(${[...ids]}::uuid[]) and status = ${pending} and expiration < ${now}
      order by id for update`,
  );
}

export async function hasExpired(db: Queryable, now: number): Promise<boolean> {
  const rows = await db.query(
    sql`select from kyc_order where status = 'PENDING' and expiration < ${now} limit 1`,
  );
  return rows.length > 0;
}

/** Links that nobody can use any more. */
export const deleteTokens = purgeOf({
  table: "kyc_token",
  key: "token_sha256",
  time: "expiration",
});

/** The latest entries of an order's history, over all attempts, oldest first. */
export async function listHistory(
  db: Queryable,
  orderId: string,
  limit: number,
): Promise<ReachedStatus[]> {
  const rows = await db.query<ReachedStatus>(
    sql`select status, created_at as "statusAt", '0x' || encode(initiated_tx_hash, 'hex') as "initiatedTxHash",
        '0x' || encode(confirm_tx_hash, 'hex') as "confirmTxHash", failure_reason as "failureReason"
      from kyc_order_status where order_id = ${orderId} order by sequence desc limit ${limit}`,
  );
  return rows.toReversed();
}

/** Whose orders, and which of them. */
export interface OrderFilter {
  readonly clientDomainId: string;
  readonly status: Status | null;
  readonly user: Address | null;
}

/** Newest first. @param page.before id of the last order of the page before */
export async function listOrders(
  db: Queryable,
  filter: OrderFilter,
  page: { before: string | null; limit: number },
): Promise<Order[]> {
  return db.query<Order>(
    filteredOrders(filter, { before: page.before ?? lastUuid, limit: page.limit }),
  );
}

/** A statement for each filter: a single one for all of them would get one plan, which scans every order. */
function filteredOrders(
  { clientDomainId, status, user }: OrderFilter,
  { before, limit }: { before: string; limit: number },
): Statement {
  if (user !== null)
    return sql`select ${orderColumns} from kyc_order
      where user_address = ${user} and client_domain_id = ${clientDomainId}
        and (${status}::text is null or status = ${status}) and id < ${before}
      order by id desc limit ${limit}`;
  if (status !== null)
    return sql`select ${orderColumns} from kyc_order
      where client_domain_id = ${clientDomainId} and status = ${status} and id < ${before}
      order by id desc limit ${limit}`;
  return sql`select ${orderColumns} from kyc_order where client_domain_id = ${clientDomainId} and id < ${before}
    order by id desc limit ${limit}`;
}

/** Orders to a user, newest first, with the names of those who asked. */
export async function listOrdersOf(
  db: Queryable,
  user: Address,
  page: { before: string | null; limit: number },
): Promise<(Order & { organizationName: string; domain: string })[]> {
  return db.query<Order & { organizationName: string; domain: string }>(
    sql`select ${orderColumns}, organization.name as "organizationName", client_domain.domain
      from kyc_order
        join client_domain on client_domain.id = kyc_order.client_domain_id
        join organization on organization.id = kyc_order.organization_id
      where user_address = ${user} and kyc_order.id < ${page.before ?? lastUuid}
      order by kyc_order.id desc limit ${page.limit}`,
  );
}

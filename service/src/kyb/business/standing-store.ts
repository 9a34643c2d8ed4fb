import type { Address } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { type Db, type Queryable, sql } from "../../platform/database/db.ts";
import { waitForRow } from "../../platform/database/held-row-store.ts";
import type { BusinessStatus } from "./business.ts";
import { rosterChannel } from "./roster-store.ts";

/** Why all requests to a business end; also the reason with which they fail. */
export type StopReason = "business_not_verified" | "business_wallet_rotated";

/** A business as the operator lists it. */
export interface ListedBusiness {
  readonly address: Address;
  readonly environment: Environment;
  readonly name: string;
  readonly status: BusinessStatus;
  readonly members: number;
  readonly verifiedAt: number | null;
  readonly registeredAt: number | null;
}

export async function listBusinesses(
  db: Queryable,
  of: { status: string | null; environment: Environment | null; after: string; limit: number },
): Promise<ListedBusiness[]> {
  return db.query<ListedBusiness>(
    sql`select address, environment, name, status, verified_at as "verifiedAt", registered_at as "registeredAt",
        (select count(*)::int from business_member where business = address) as members
      from business
      where (${of.status}::text is null or status = ${of.status})
        and (${of.environment}::text is null or environment = ${of.environment}) and address > ${of.after}
      order by address limit ${of.limit}`,
  );
}

/** Marks a business as verified since then, or with null as not verified. @returns whether that is a change */
export async function setVerified(
  tx: Queryable,
  address: Address,
  verifiedAt: number | null,
): Promise<boolean> {
  const rows = await tx.query(
    sql`update business set verified_at = ${verifiedAt}::bigint
      where address = ${address} and (verified_at is null) <> (${verifiedAt}::bigint is null) returning 1 as changed`,
  );
  return rows.length === 1;
}

/** Stores the operator's declaration about a business's record; null for none. @returns whether that is a change */
export async function setOperatorWord(
  tx: Queryable,
  address: Address,
  word: boolean | null,
): Promise<boolean> {
  const rows = await tx.query(
    sql`update business set operator_word = ${word}::boolean
      where address = ${address} and operator_word is distinct from ${word}::boolean returning 1 as changed`,
  );
  return rows.length === 1;
}

/** What the operator has declared about the record of a business; null for nothing. */
export async function findOperatorWord(tx: Queryable, address: Address): Promise<boolean | null> {
  const [row] = await tx.query<{ word: boolean | null }>(
    sql`select operator_word as word from business where address = ${address}`,
  );
  return row?.word ?? null;
}

/** @returns false if the business does not have the status `from` */
export async function setStatus(
  tx: Queryable,
  address: Address,
  change: { from: BusinessStatus; to: BusinessStatus },
): Promise<boolean> {
  const rows = await tx.query(
    sql`update business set status = ${change.to} where address = ${address} and status = ${change.from}
      returning 1 as changed`,
  );
  return rows.length === 1;
}

/** Has a running service end the requests to a business without good standing, once this transaction commits. */
export async function requestStop(tx: Queryable, address: Address): Promise<void> {
  await tx.query(
    sql`with marked as (update business set stop_reason = 'business_not_verified' where address = ${address})
      select pg_notify(${rosterChannel}, '')`,
  );
}

/** Whether a business has to be stopped. */
export async function hasStop(db: Queryable): Promise<boolean> {
  const rows = await db.query(sql`select from business where stop_reason is not null limit 1`);
  return rows.length === 1;
}

/** Takes and locks a business that has to be stopped, if there is one that is not locked. */
export async function takeStop(
  tx: Queryable,
): Promise<{ business: Address; reason: StopReason } | null> {
  const [row] = await tx.query<{ business: Address; reason: StopReason }>(
    sql`with taken as (
        select address, stop_reason from business where stop_reason is not null
        order by address limit 1 for update skip locked)
      update business set stop_reason = null from taken where business.address = taken.address
      returning business.address as business, taken.stop_reason as reason`,
  );
  return row ?? null;
}

/** Waits for the lock on a business that has to be stopped. @returns whether {@link takeStop} can take it */
export async function waitForStop(db: Db): Promise<boolean> {
  return waitForRow(
    db,
    sql`select from business where stop_reason is not null order by address limit 1 for update`,
  );
}

/** A move by the operator, until it is carried out or cancelled. */
export interface Move {
  readonly business: Address;
  readonly successor: Address;
  /** When it takes effect, Unix seconds. */
  readonly endsAt: number;
  readonly keepNonce: number;
}

/** @returns false if one is announced already */
export async function insertMove(tx: Queryable, move: Move, now: number): Promise<boolean> {
  const rows = await tx.query(
    sql`insert into business_move (business, successor, ends_at, keep_nonce, created_at)
      values (${move.business}, ${move.successor}, ${move.endsAt}, ${move.keepNonce}, ${now})
      on conflict (business) do nothing returning 1 as added`,
  );
  return rows.length === 1;
}

export async function listMoves(db: Queryable, businesses: readonly Address[]): Promise<Move[]> {
  return db.query<Move>(
    sql`select business, successor, ends_at as "endsAt", keep_nonce as "keepNonce"
      from business_move where business = any(${[...businesses]}::text[])`,
  );
}

/** @returns false if there was none */
export async function cancelMove(tx: Queryable, business: Address): Promise<boolean> {
  const rows = await tx.query(
    sql`delete from business_move where business = ${business} returning 1 as gone`,
  );
  return rows.length === 1;
}

/** The most moves in one run; the others follow in the next one, seconds later. */
const movesMax = 50;

/** Businesses whose move is due, without those whose successor is suspended. */
export async function listDueMoves(db: Queryable, now: number): Promise<Address[]> {
  const rows = await db.query<{ business: Address }>(
    sql`select business from business_move join business next on next.address = business_move.successor
      where ends_at <= ${now} and next.status <> 'suspended' order by business limit ${movesMax}`,
  );
  return rows.map(({ business }) => business);
}

export async function setMoved(tx: Queryable, address: Address, successor: Address): Promise<void> {
  await tx.query(
    sql`update business set status = 'moved', successor = ${successor} where address = ${address}`,
  );
}

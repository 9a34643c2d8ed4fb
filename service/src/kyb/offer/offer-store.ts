import type { Address } from "@svc/protocol";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import type { Offer } from "./offer.ts";

const offerColumns = columns`
  id, client_domain_id as "clientDomainId", organization_id as "organizationId", environment, kind, requester,
  created_at as "createdAt", expires_at as "expiresAt", cancelled_at as "cancelledAt", claimed_at as "claimedAt",
  business, claimant, request_id as "requestId", '0x' || encode(digest, 'hex') as digest,
  request_sealed as "requestSealed"`;

/** An offer with its sealed request, which is null once it has been purged. */
export interface StoredOffer {
  readonly offer: Offer;
  readonly requestSealed: Buffer | null;
}

type OfferRow = Offer & Pick<StoredOffer, "requestSealed">;

function toStored({ requestSealed, ...offer }: OfferRow): StoredOffer {
  return { offer, requestSealed };
}

export async function insertOffer(
  tx: Queryable,
  offer: Offer,
  requestSealed: Buffer,
): Promise<void> {
  await tx.query(
    sql`insert into kyb_offer (id, client_domain_id, organization_id, environment, kind, request_sealed, requester,
        digest, created_at, expires_at)
      values (${offer.id}, ${offer.clientDomainId}, ${offer.organizationId}, ${offer.environment}, ${offer.kind},
        ${requestSealed}, ${offer.requester},
        ${offer.digest === null ? null : bufferOfHex(offer.digest)}, ${offer.createdAt}, ${offer.expiresAt})`,
  );
}

export async function findOffer(db: Queryable, id: string): Promise<StoredOffer | null> {
  const [row] = await db.query<OfferRow>(
    sql`select ${offerColumns} from kyb_offer where id = ${id}`,
  );
  return row === undefined ? null : toStored(row);
}

/**
 * Stores the request object of an offer.
 *
 * @returns the one that is stored, since another process may have been faster
 */
export async function keepObject(db: Queryable, id: string, object: string): Promise<string> {
  const [row] = await db.query<{ request_object: string }>(
    sql`update kyb_offer set request_object = coalesce(request_object, ${object})
      where id = ${id} returning request_object`,
  );
  return row?.request_object ?? object;
}

export async function findObject(db: Queryable, id: string): Promise<string | null> {
  const [row] = await db.query<{ request_object: string | null }>(
    sql`select request_object from kyb_offer where id = ${id}`,
  );
  return row?.request_object ?? null;
}

/** Locks an offer for this transaction. */
export async function lockOffer(tx: Queryable, id: string): Promise<StoredOffer | null> {
  const [row] = await tx.query<OfferRow>(
    sql`select ${offerColumns} from kyb_offer where id = ${id} for update`,
  );
  return row === undefined ? null : toStored(row);
}

export async function markCancelled(tx: Queryable, id: string, now: number): Promise<void> {
  await tx.query(sql`update kyb_offer set cancelled_at = ${now} where id = ${id}`);
}

export async function markClaimed(
  tx: Queryable,
  claimed: { id: string; business: Address; claimant: Address; requestId: string; now: number },
): Promise<void> {
  await tx.query(
    sql`update kyb_offer set claimed_at = ${claimed.now}, business = ${claimed.business},
        claimant = ${claimed.claimant}, request_id = ${claimed.requestId}
      where id = ${claimed.id}`,
  );
}

/** Until when members may vote on the request of a claimed offer, Unix seconds. */
export async function findRequestEnd(tx: Queryable, requestId: string): Promise<number | null> {
  const [row] = await tx.query<{ expires_at: number }>(
    sql`select expires_at from signature_request where id = ${requestId}
      union all select expires_at from data_request where id = ${requestId}`,
  );
  return row?.expires_at ?? null;
}

/**
 * Deletes what was requested, and who took it, of offers that expired before a time. A request that was made has its
 * own copy.
 *
 * @returns of how many offers
 */
export async function purgeOffered(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    update kyb_offer set request_sealed = null, request_object = null, claimant = null where id = any(array(
      select id from kyb_offer where request_sealed is not null and expires_at < ${before} order by expires_at limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}

/** Deletes the information which offers a user has taken; the requests that were made stay. */
export async function forgetClaims(tx: Queryable, user: Address): Promise<void> {
  await tx.query(sql`update kyb_offer set claimant = null where claimant = ${user}`);
}

/** The name of an organization, as wallets show it. */
export async function findOrganizationName(db: Queryable, id: string): Promise<string | null> {
  const [row] = await db.query<{ name: string }>(
    sql`select name from organization where id = ${id}`,
  );
  return row?.name ?? null;
}

import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";

/** The removal of a member, as the chain has it. */
export interface Removal {
  readonly business: Address;
  readonly member: Address;
  /** Unix seconds. */
  readonly endsAt: number;
  readonly keepNonce: number;
  /** When the member first answered since its notice began or was renewed, Unix seconds; null if it did not. */
  readonly answeredAt: number | null;
}

export async function saveRemoval(
  tx: Queryable,
  removal: Omit<Removal, "answeredAt">,
): Promise<void> {
  await tx.query(
    sql`insert into business_removal (business, member, ends_at, keep_nonce)
      values (${removal.business}, ${removal.member}, ${removal.endsAt}, ${removal.keepNonce})
      on conflict (business) do update set member = excluded.member, ends_at = excluded.ends_at,
        keep_nonce = excluded.keep_nonce, answered_at = null, finishing_epoch = null, finish_failures = 0,
        finish_due_at = null
      where business_removal.keep_nonce <> excluded.keep_nonce`,
  );
}

export async function deleteRemoval(tx: Queryable, business: Address): Promise<void> {
  await tx.query(sql`delete from business_removal where business = ${business}`);
}

/** Open removals; at most one for each business. */
export async function listRemovals(
  db: Queryable,
  businesses: readonly Address[],
): Promise<Removal[]> {
  return db.query<Removal>(
    sql`select business, member, ends_at as "endsAt", keep_nonce as "keepNonce", answered_at as "answeredAt"
      from business_removal where business = any(${[...businesses]}::text[])`,
  );
}

/**
 * Records that the member has answered its removal. Once the removal was renewed, a vote is no answer any more, only a
 * signature.
 */
export async function noteAnswered(
  tx: Queryable,
  given: { business: Address; member: Address; by: "vote" | "signature"; now: number },
): Promise<void> {
  await tx.query(
    sql`update business_removal set answered_at = coalesce(answered_at, ${given.now})
      where business = ${given.business} and member = ${given.member}
        and (${given.by === "signature"} or renewed_nonce is distinct from keep_nonce)`,
  );
}

/** Restarts the notice of an open removal that was answered by `answeredBy`. @returns whether there was one */
export async function renewRemoval(
  tx: Queryable,
  given: { business: Address; member: Address; answeredBy: number; endsAt: number },
): Promise<boolean> {
  const rows = await tx.query(
    sql`update business_removal set answered_at = null, renewed_nonce = keep_nonce, ends_at = ${given.endsAt}
      where business = ${given.business} and member = ${given.member} and answered_at <= ${given.answeredBy}
      returning 1 as renewed`,
  );
  return rows.length === 1;
}

/** The open removal of this member in the business of a ballot. */
export async function findRemovalByBallot(
  db: Queryable,
  of: { ballotId: string; member: Address },
): Promise<Removal | null> {
  const [row] = await db.query<Removal>(
    sql`select business, member, ends_at as "endsAt", keep_nonce as "keepNonce",
        answered_at as "answeredAt"
      from business_removal
      where business = (select business from ballot where id = ${of.ballotId}) and member = ${of.member}`,
  );
  return row ?? null;
}

/** A removal to finish. */
export interface DueRemoval {
  readonly business: Address;
  readonly keepNonce: number;
  readonly epoch: number;
  /** How many transactions of this epoch were reverted. */
  readonly failures: number;
}

/**
 * Takes removals that are due and not sent yet. Each is sent once per epoch, and again when {@link putOffRemoval} has
 * made it due.
 */
export async function takeDueRemovals(
  tx: Queryable,
  due: { now: number; before: number; limit: number },
): Promise<DueRemoval[]> {
  return tx.query<DueRemoval>(
    sql`update business_removal set finishing_epoch = business.epoch, finish_due_at = null,
        finish_failures = case when finishing_epoch = business.epoch then finish_failures else 0 end
      from business
      where business.address = business_removal.business and business_removal.business in (
        select r.business from business_removal r join business b on b.address = r.business
        where r.ends_at <= ${due.before} and r.answered_at is null and b.status in ('active', 'suspended')
          and (r.finishing_epoch is null or r.finishing_epoch < b.epoch or r.finish_due_at <= ${due.now})
        limit ${due.limit} for update of r skip locked)
      returning business_removal.business, keep_nonce as "keepNonce", business.epoch, finish_failures as failures`,
  );
}

/** Makes a removal due again at `dueAt`, unless that was done already or another one was sent since. */
export async function putOffRemoval(tx: Queryable, sent: DueRemoval, dueAt: number): Promise<void> {
  await tx.query(
    sql`update business_removal set finish_failures = ${sent.failures + 1}, finish_due_at = ${dueAt}
      where business = ${sent.business} and keep_nonce = ${sent.keepNonce} and finishing_epoch = ${sent.epoch}
        and finish_failures = ${sent.failures} and finish_due_at is null`,
  );
}

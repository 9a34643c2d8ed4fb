import type { Address } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import type { Locale } from "../platform/http/pick-locale.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";

export interface NewVerification {
  readonly id: string;
  readonly user: Address;
  readonly environment: Environment;
  readonly emailSealed: Buffer;
  readonly codeMac: Buffer;
  readonly codeSealed: Buffer;
  /** The language of the message. */
  readonly locale: Locale;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Inserts a verification whose message is due at once; the processes are woken when this commits. */
export async function insertVerification(tx: Queryable, made: NewVerification): Promise<void> {
  await tx.query(
    sql`insert into email_verification (id, user_address, environment, email_sealed, code_mac, code_sealed, locale,
        created_at, expires_at, send_due_at)
      values (${made.id}, ${made.user}, ${made.environment}, ${made.emailSealed}, ${made.codeMac}, ${made.codeSealed},
        ${made.locale}, ${made.createdAt}, ${made.expiresAt}, ${made.createdAt})`,
  );
  await tx.query(sql`select pg_notify('email', '')`);
}

/** A leased message. */
export interface DueMessage {
  readonly id: string;
  readonly user: Address;
  readonly emailSealed: Buffer;
  readonly codeSealed: Buffer;
  readonly locale: Locale;
  /** The number of attempts, including this one. */
  readonly attempts: number;
}

/** Leases messages that are due; if the process dies, they are due again at `leasedUntil`. */
export async function leaseMessages(
  db: Queryable,
  { now, leasedUntil, limit }: { now: number; leasedUntil: number; limit: number },
): Promise<DueMessage[]> {
  return db.query<DueMessage>(
    sql`update email_verification set send_due_at = ${leasedUntil}, send_attempts = send_attempts + 1
      where id = any(array(
        select id from email_verification
        where send_due_at <= ${now} and expires_at > ${now} and email_sealed is not null and code_sealed is not null
        order by send_due_at limit ${limit} for update skip locked
      ))
      returning id, user_address as "user", email_sealed as "emailSealed", code_sealed as "codeSealed",
        locale, send_attempts as attempts`,
  );
}

export async function noteSent(db: Queryable, id: string, now: number): Promise<void> {
  await db.query(
    sql`update email_verification set sent_at = ${now}, send_due_at = null, code_sealed = null where id = ${id}`,
  );
}

/** @param dueAt when to try again; null for never */
export async function noteNotSent(db: Queryable, id: string, dueAt: number | null): Promise<void> {
  await db.query(sql`update email_verification set send_due_at = ${dueAt} where id = ${id}`);
}

export async function findVerificationOwner(db: Queryable, id: string): Promise<Address | null> {
  const [row] = await db.query<{ user_address: Address }>(
    sql`select user_address from email_verification where id = ${id}`,
  );
  return row?.user_address ?? null;
}

/** A verification of which one try has just been used up. */
export interface TriedVerification {
  readonly environment: Environment;
  readonly emailSealed: Buffer;
  readonly codeMac: Buffer;
}

/** Uses up one try and keeps the row locked; null if the verification is over, used, or another user's. */
export async function takeTry(
  tx: Queryable,
  { id, user, now, triesMax }: { id: string; user: Address; now: number; triesMax: number },
): Promise<TriedVerification | null> {
  const [tried] = await tx.query<TriedVerification>(
    sql`update email_verification set tries = tries + 1
      where id = ${id} and user_address = ${user} and expires_at > ${now} and tries < ${triesMax}
        and email_sealed is not null
      returning environment, email_sealed as "emailSealed", code_mac as "codeMac"`,
  );
  return tried ?? null;
}

/** The credential that a verification has issued, and the MAC of its code; null if there is none, or it has expired. */
export async function findIssued(
  tx: Queryable,
  { id, user, now }: { id: string; user: Address; now: number },
): Promise<{ codeMac: Buffer; credentialId: string } | null> {
  const [issued] = await tx.query<{ codeMac: Buffer; credentialId: string }>(
    sql`select code_mac as "codeMac", credential_id as "credentialId" from email_verification
      where id = ${id} and user_address = ${user} and expires_at > ${now} and credential_id is not null`,
  );
  return issued ?? null;
}

/** Ends a verification, and deletes the e-mail address and the sealed code. */
export async function finishVerification(
  tx: Queryable,
  id: string,
  credentialId: string,
): Promise<void> {
  await tx.query(
    sql`update email_verification set credential_id = ${credentialId}, email_sealed = null, code_sealed = null,
        send_due_at = null
      where id = ${id}`,
  );
}

export const deleteVerifications = purgeOf({
  table: "email_verification",
  key: "id",
  time: "expires_at",
  isInclusive: true,
});

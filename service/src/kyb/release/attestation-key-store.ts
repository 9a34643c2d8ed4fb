import type { ScheduledKey } from "../../platform/cryptography/key-schedule.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";

/** The channel that notifies processes when a key was made, started or revoked. */
export const attestationKeyChannel = "attestation-key";

export interface AttestationKeyRow extends ScheduledKey {
  readonly publicJwk: Readonly<Record<string, string>>;
  readonly privateSealed: Buffer;
  readonly createdAt: number;
}

/** Every key that has not been revoked, oldest first. */
export async function listKeys(db: Queryable): Promise<AttestationKeyRow[]> {
  return db.query<AttestationKeyRow>(
    sql`select kid, public_jwk as "publicJwk", private_sealed as "privateSealed", created_at as "createdAt",
        starts_at as "startsAt"
      from attestation_key where revoked_at is null order by starts_at`,
  );
}

/** Inserts a key into its slot unless another process was first. */
export async function insertKey(db: Queryable, key: AttestationKeyRow): Promise<void> {
  await db.query(
    sql`with made as (
        insert into attestation_key (kid, public_jwk, private_sealed, created_at, starts_at)
        values (${key.kid}, ${JSON.stringify(key.publicJwk)}, ${key.privateSealed}, ${key.createdAt}, ${key.startsAt})
        on conflict do nothing returning kid)
      select pg_notify(${attestationKeyChannel}, kid) from made`,
  );
}

/** Lets a key sign from an earlier time on than planned. @returns false if it does so already, or is revoked */
export async function startKey(db: Queryable, kid: string, startsAt: number): Promise<boolean> {
  const rows = await db.query(
    sql`with started as (
        update attestation_key set starts_at = ${startsAt} where kid = ${kid} and starts_at > ${startsAt}
          and revoked_at is null returning kid)
      select pg_notify(${attestationKeyChannel}, kid) from started`,
  );
  return rows.length === 1;
}

/** Keeps a key from being revoked until the transaction ends. @returns false if there is no such live key */
export async function holdKey(tx: Queryable, kid: string): Promise<boolean> {
  const rows = await tx.query(
    sql`select from attestation_key where kid = ${kid} and revoked_at is null for share`,
  );
  return rows.length === 1;
}

/** @returns false if there is no such live key */
export async function revokeKey(db: Queryable, kid: string, now: number): Promise<boolean> {
  const rows = await db.query(
    sql`with revoked as (
        update attestation_key set revoked_at = ${now} where kid = ${kid} and revoked_at is null returning kid)
      select pg_notify(${attestationKeyChannel}, kid) from revoked`,
  );
  return rows.length === 1;
}

/** Removes keys whose successor started so long ago that everything they signed has expired. */
export async function purgeKeys(db: Queryable, retiredBefore: number): Promise<void> {
  await db.query(
    sql`delete from attestation_key as old where exists (
        select from attestation_key as successor where successor.revoked_at is null
          and successor.starts_at > old.starts_at and successor.starts_at < ${retiredBefore})`,
  );
}

import { type Queryable, sql } from "../../platform/database/db.ts";
import type { KeyPurpose } from "./signing-key.ts";

export interface SigningKeyRow {
  readonly kid: string;
  readonly purpose: KeyPurpose;
  readonly publicJwk: Readonly<Record<string, string>>;
  readonly privateSealed: Buffer;
  readonly createdAt: number;
  readonly startsAt: number;
}

/** Every key that was not revoked, oldest first. */
export async function listKeys(db: Queryable): Promise<SigningKeyRow[]> {
  return db.query<SigningKeyRow>(sql`
    select kid, purpose, public_jwk as "publicJwk", private_sealed as "privateSealed", created_at as "createdAt",
      starts_at as "startsAt"
    from signing_key where revoked_at is null order by purpose, starts_at`);
}

/** Reads what decides which key signs, for every key that was not revoked, and locks it until the transaction ends. */
export async function lockKeys(
  tx: Queryable,
): Promise<Pick<SigningKeyRow, "kid" | "purpose" | "startsAt">[]> {
  return tx.query(sql`
    select kid, purpose, starts_at as "startsAt"
    from signing_key where revoked_at is null order by purpose, starts_at for update`);
}

/** Takes the slot (purpose, starts_at) unless another process was first. */
export async function insertKey(db: Queryable, key: SigningKeyRow): Promise<void> {
  await db.query(sql`
    with made as (
      insert into signing_key (kid, purpose, public_jwk, private_sealed, created_at, starts_at)
      values (${key.kid}, ${key.purpose}, ${JSON.stringify(key.publicJwk)}, ${key.privateSealed}, ${key.createdAt}, ${key.startsAt})
      on conflict do nothing returning kid)
    select pg_notify('signing-key', kid) from made`);
}

/** Lets a key that was meant for later sign from `startsAt` on, Unix seconds. @returns false when it does already */
export async function startKey(db: Queryable, kid: string, startsAt: number): Promise<boolean> {
  const rows = await db.query(sql`
    with started as (
      update signing_key set starts_at = ${startsAt}
      where kid = ${kid} and starts_at > ${startsAt} and revoked_at is null
      returning kid)
    select pg_notify('signing-key', kid) from started`);
  return rows.length === 1;
}

/** @returns false when there is no such live key */
export async function revokeKey(db: Queryable, kid: string, now: number): Promise<boolean> {
  const rows = await db.query(sql`
    with revoked as (
      update signing_key set revoked_at = ${now} where kid = ${kid} and revoked_at is null returning kid)
    select pg_notify('signing-key', kid) from revoked`);
  return rows.length === 1;
}

/** Removes keys whose successor started long ago: nothing that they signed can still matter. */
export async function purgeKeys(db: Queryable, retiredBefore: number): Promise<void> {
  await db.query(sql`
    delete from signing_key as old where exists (
      select from signing_key as successor where successor.purpose = old.purpose and successor.revoked_at is null
        and successor.starts_at > old.starts_at and successor.starts_at < ${retiredBefore})`);
}

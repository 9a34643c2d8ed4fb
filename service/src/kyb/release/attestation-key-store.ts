import { type Queryable, sql } from "../../platform/database/db.ts";

export interface AttestationKeyRow {
  readonly kid: string;
  readonly publicJwk: Readonly<Record<string, string>>;
  readonly privateSealed: Buffer;
  readonly createdAt: number;
  readonly startsAt: number;
}

/** Every key that was not revoked, oldest first. */
export async function listKeys(db: Queryable): Promise<AttestationKeyRow[]> {
  return db.query<AttestationKeyRow>(
    sql`select kid, public_jwk as "publicJwk", private_sealed as "privateSealed", created_at as "createdAt",
        starts_at as "startsAt"
      from attestation_key where revoked_at is null order by starts_at`,
  );
}

/** Takes the slot unless another process was first. */
export async function insertKey(db: Queryable, key: AttestationKeyRow): Promise<void> {
  await db.query(
    sql`insert into attestation_key (kid, public_jwk, private_sealed, created_at, starts_at)
      values (${key.kid}, ${JSON.stringify(key.publicJwk)}, ${key.privateSealed}, ${key.createdAt}, ${key.startsAt})
      on conflict do nothing`,
  );
}

/** Removes keys whose successor started long ago: whatever they signed is over. */
export async function purgeKeys(db: Queryable, retiredBefore: number): Promise<void> {
  await db.query(
    sql`delete from attestation_key as old where exists (
        select from attestation_key as successor where successor.revoked_at is null
          and successor.starts_at > old.starts_at and successor.starts_at < ${retiredBefore})`,
  );
}

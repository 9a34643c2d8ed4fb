import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";

/** An identity that the service made for a sandbox domain. */
export interface SyntheticIdentity {
  readonly user: Address;
  readonly clientDomainId: string;
  readonly keySealed: Buffer;
  readonly heldSealed: Buffer;
}

export async function insertIdentity(
  db: Queryable,
  identity: SyntheticIdentity,
  now: number,
): Promise<void> {
  await db.query(
    sql`insert into synthetic_identity (user_address, client_domain_id, key_sealed, held_sealed, created_at)
      values (${identity.user}, ${identity.clientDomainId}, ${identity.keySealed}, ${identity.heldSealed}, ${now})`,
  );
}

/** Null if the service did not make this identity for this domain. */
export async function findIdentity(
  db: Queryable,
  user: Address,
  clientDomainId: string,
): Promise<SyntheticIdentity | null> {
  const [row] = await db.query<SyntheticIdentity>(
    sql`select user_address as "user", client_domain_id as "clientDomainId", key_sealed as "keySealed",
        held_sealed as "heldSealed"
      from synthetic_identity
      where user_address = ${user} and client_domain_id = ${clientDomainId}`,
  );
  return row ?? null;
}

export async function deleteIdentity(tx: Queryable, user: Address): Promise<void> {
  await tx.query(sql`delete from synthetic_identity where user_address = ${user}`);
}

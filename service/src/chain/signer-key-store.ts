import { type Queryable, sql } from "../platform/database/db.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";

export const signerKeyColumn: SealedColumn = {
  table: "chain_signer_key",
  idColumn: "name",
  column: "sealed",
};

export async function findSignerKey(db: Queryable, name: string): Promise<Buffer | null> {
  const [row] = await db.query<{ sealed: Buffer }>(
    sql`select sealed from chain_signer_key where name = ${name}`,
  );
  return row?.sealed ?? null;
}

/** Stores the key unless there is one. @returns the stored one, which may be another process's */
export async function keepSignerKey(
  db: Queryable,
  key: { name: string; sealed: Buffer; createdAt: number },
): Promise<Buffer> {
  await db.query(sql`
    insert into chain_signer_key (name, sealed, created_at)
    values (${key.name}, ${key.sealed}, ${key.createdAt}) on conflict (name) do nothing`);
  return (await findSignerKey(db, key.name)) ?? key.sealed;
}

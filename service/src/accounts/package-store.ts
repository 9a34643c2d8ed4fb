import { columns, type Queryable, sql } from "../platform/database/db.ts";
import type { KycPackage } from "./package.ts";

type PackageRow = Omit<KycPackage, "priceRappen"> & { readonly priceRappen: string };

const packageColumns = columns`
  id, client_domain_id as "clientDomainId", name, source_key as "sourceKey", fields,
  transfers_total as "transfersTotal", transfers_held as "transfersHeld", transfers_consumed as "transfersConsumed",
  price_rappen::text as "priceRappen", created_at as "createdAt"`;

function toPackage(row: PackageRow): KycPackage {
  return { ...row, priceRappen: BigInt(row.priceRappen) };
}

export async function insertPackage(
  tx: Queryable,
  given: KycPackage & { signingKeySealed: Buffer },
): Promise<void> {
  await tx.query(
    sql`insert into kyc_package (id, client_domain_id, name, source_key, signing_key_sealed, fields,
        transfers_total, price_rappen, created_at)
      values (${given.id}, ${given.clientDomainId}, ${given.name}, ${given.sourceKey}, ${given.signingKeySealed},
        ${given.fields}::text[], ${given.transfersTotal}, ${String(given.priceRappen)}::bigint, ${given.createdAt})`,
  );
}

export async function listPackages(db: Queryable, clientDomainId: string): Promise<KycPackage[]> {
  const rows = await db.query<PackageRow>(
    sql`select ${packageColumns} from kyc_package where client_domain_id = ${clientDomainId} order by id`,
  );
  return rows.map(toPackage);
}

export async function findPackage(db: Queryable, id: string): Promise<KycPackage | null> {
  const [row] = await db.query<PackageRow>(
    sql`select ${packageColumns} from kyc_package where id = ${id}`,
  );
  return row === undefined ? null : toPackage(row);
}

export interface SealedKeyRow {
  readonly id: string;
  readonly sealed: Buffer;
}

export async function listSigningKeys(
  db: Queryable,
  ids: readonly string[],
): Promise<SealedKeyRow[]> {
  return db.query<SealedKeyRow>(
    sql`select id, signing_key_sealed as sealed from kyc_package where id = any(${ids}::uuid[])`,
  );
}

/** Stores the successor of the signing key, replacing an earlier successor. */
export async function setNextKey(tx: Queryable, id: string, sealed: Buffer): Promise<void> {
  await tx.query(sql`update kyc_package set next_signing_key_sealed = ${sealed} where id = ${id}`);
}

/** The successor of the signing key; locks the package. */
export async function findNextKey(tx: Queryable, id: string): Promise<Buffer | null> {
  const [row] = await tx.query<{ sealed: Buffer | null }>(
    sql`select next_signing_key_sealed as sealed from kyc_package where id = ${id} for update`,
  );
  return row?.sealed ?? null;
}

/** Replaces the signing key by its successor, sealed again for that column. */
export async function switchKey(tx: Queryable, id: string, sealed: Buffer): Promise<void> {
  await tx.query(
    sql`update kyc_package set signing_key_sealed = ${sealed}, next_signing_key_sealed = null where id = ${id}`,
  );
}

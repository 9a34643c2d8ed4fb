import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { type Queryable, sql } from "../platform/db.ts";
import type { KnownLeaf } from "./leaf.ts";

/** Which of a user's fields are verified, on one side. */
export interface FieldsQuestion {
  readonly user: Address;
  readonly environment: Environment;
  readonly fields: readonly FieldName[];
}

/** For each question the fields that have a leaf that counts at `now`; some may come more than once. */
export async function listLiveFields(
  db: Queryable,
  questions: readonly FieldsQuestion[],
  now: number,
): Promise<string[][]> {
  const rows = await db.query<{ n: number; field: string }>(
    sql`select n, field
      from unnest(${questions.map(({ user }) => user)}::text[],
          ${questions.map(({ environment }) => environment)}::text[],
          ${questions.map(({ fields }) => fields.join())}::text[]) with ordinality as asked (who, side, names, n)
        join verified_leaf on user_address = who and environment = side
          and field = any(string_to_array(names, ','))
      where counts and expires_at > ${now}`,
  );
  const answers: string[][] = questions.map(() => []);
  for (const { n, field } of rows) answers[n - 1]?.push(field);
  return answers;
}

/** Which of a user's leaves, on one side, the openings fit. */
export interface OpeningsQuestion {
  readonly user: Address;
  readonly environment: Environment;
  readonly openings: readonly Buffer[];
}

/** For each question the leaves that its openings fit, of those that were ever attested. */
export async function listOpenedLeaves(
  db: Queryable,
  questions: readonly OpeningsQuestion[],
): Promise<KnownLeaf[][]> {
  const flat = questions.flatMap(({ user, environment, openings }, index) =>
    openings.map((opening) => ({ user, environment, opening, n: index })),
  );
  const rows = await db.query<{
    n: number;
    field: FieldName;
    leaf: Hex32;
    opening: Buffer;
    expires_at: number;
    is_revoked: boolean;
  }>(
    sql`select n, field, '0x' || encode(leaf, 'hex') as leaf, verified_leaf.opening, expires_at, is_revoked
      from unnest(${flat.map(({ user }) => user)}::text[], ${flat.map(({ environment }) => environment)}::text[],
          ${flat.map(({ opening }) => opening)}::bytea[], ${flat.map(({ n }) => n)}::int[])
          as asked (who, side, opening, n)
        join verified_leaf on verified_leaf.opening = asked.opening and user_address = who and environment = side
      where is_attested`,
  );
  const answers: KnownLeaf[][] = questions.map(() => []);
  for (const { n, field, leaf, opening, expires_at: expiresAt, is_revoked: isRevoked } of rows)
    answers[n]?.push({ field, leaf, opening, expiresAt, isRevoked });
  return answers;
}

/** Which of the leaves count at `now`. */
export async function listLiveLeaves(
  db: Queryable,
  leaves: readonly Hex32[],
  now: number,
): Promise<Hex32[]> {
  const rows = await db.query<{ leaf: Hex32 }>(
    sql`select '0x' || encode(leaf, 'hex') as leaf from verified_leaf
      where leaf = any(${bytesOf(leaves)}::bytea[]) and counts and expires_at > ${now}`,
  );
  return rows.map((row) => row.leaf);
}

/** A leaf with the tree that it stands in, and where that was attested. */
export interface ProofRow<Field extends string = FieldName> {
  readonly field: Field;
  readonly leaf: Hex32;
  readonly commitment: Hex32;
  readonly expiresAt: number;
  readonly root: Hex32;
  readonly tree: Buffer;
  readonly issuer: Address;
  readonly transactionHash: Hex32;
}

interface ProofColumns<Field> {
  field: Field;
  leaf: Hex32;
  commitment: Hex32;
  expires_at: number;
  root: Hex32;
  tree: Buffer;
  issuer: Address;
  transaction_hash: Hex32;
}

/** The attested ones among these leaves of a user, newest credential first. */
export async function listProofRows<Field extends string = FieldName>(
  db: Queryable,
  {
    user,
    environment,
    leaves,
  }: { user: Address; environment: Environment; leaves: readonly Hex32[] },
): Promise<ProofRow<Field>[]> {
  const rows = await db.query<ProofColumns<Field>>(
    sql`select credential_leaf.field, '0x' || encode(credential_leaf.leaf, 'hex') as leaf,
        '0x' || encode(credential_leaf.commitment, 'hex') as commitment, credential_leaf.expires_at,
        '0x' || encode(credential.root, 'hex') as root, credential.tree, issuer.address as issuer,
        '0x' || encode(credential_batch.transaction_hash, 'hex') as transaction_hash
      from credential_leaf
        join credential on credential.id = credential_leaf.credential_id
        join issuer on issuer.id = credential.issuer_id
        join credential_batch on credential_batch.id = credential.attest_batch_id
      where credential_leaf.leaf = any(${bytesOf(leaves)}::bytea[]) and credential.user_address = ${user}
        and credential.environment = ${environment} and credential.attested_at is not null
      order by credential.id desc, credential_leaf.field`,
  );
  return rows.map((row) => ({
    field: row.field,
    leaf: row.leaf,
    commitment: row.commitment,
    expiresAt: row.expires_at,
    root: row.root,
    tree: row.tree,
    issuer: row.issuer,
    transactionHash: row.transaction_hash,
  }));
}

/** 32 bytes each; PostgreSQL reads an array of them from texts that begin with `\x`. */
function bytesOf(leaves: readonly Hex32[]): string[] {
  return leaves.map((leaf) => `\\x${leaf.slice(2)}`);
}

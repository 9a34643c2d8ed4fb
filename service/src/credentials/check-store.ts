import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";
import type { KnownLeaf, Opening } from "./leaf.ts";
import { type Lookup, lookupColumns } from "./lookup-store.ts";

/** Which of a user's fields are verified in one environment? */
export interface FieldsQuestion {
  readonly user: Address;
  readonly environment: Environment;
  readonly fields: readonly FieldName[];
}

/**
 * For each question, the fields with a leaf that is valid at `now`; a field may be listed more than once. Also records
 * the lookups. The `offset 0` makes PostgreSQL look up each user by itself: since it does not know the length of the
 * list, it would otherwise scan the table as long as that has no more than some ten thousand leaves.
 */
export async function listLiveFields(
  db: Queryable,
  questions: readonly FieldsQuestion[],
  { lookups, now }: { lookups: readonly Lookup[]; now: number },
): Promise<string[][]> {
  const users = new Set(questions.map(({ user }) => user));
  const fields = new Set(questions.flatMap((question) => question.fields));
  const noted = lookupColumns(lookups);
  const rows = await db.query<{ user: Address; environment: Environment; field: FieldName }>(
    sql`with noted as (
        insert into lookup (key_id, user_address, at)
        select * from unnest(${noted.keyIds}::text[], ${noted.users}::text[], ${noted.minutes}::bigint[])
        on conflict do nothing)
      select live.* from unnest(${[...users]}::text[]) as asked (address) cross join lateral (
        select user_address as user, environment, field from verified_leaf
        where user_address = asked.address and field = any(${[...fields]}::text[])
          and counts and expires_at > ${now} offset 0) as live`,
  );
  const known = Map.groupBy(rows, ({ user, environment }) => `${environment} ${user}`);
  return questions.map(({ user, environment, fields: asked }) => {
    const own = known.get(`${environment} ${user}`) ?? [];
    return own.map(({ field }) => field).filter((field) => asked.includes(field));
  });
}

/** Which of a user's leaves in one environment match the openings? */
export interface OpeningsQuestion {
  readonly user: Address;
  readonly environment: Environment;
  readonly openings: readonly Opening[];
}

/** For each question, the attested leaves that match its openings, still valid or not. Also records the lookups. */
export async function listOpenedLeaves(
  db: Queryable,
  questions: readonly OpeningsQuestion[],
  lookups: readonly Lookup[],
): Promise<KnownLeaf[][]> {
  const noted = lookupColumns(lookups);
  const openings = questions.flatMap((question) => question.openings.map((each) => `\\x${each}`));
  const rows = await db.query<KnownLeaf & { user: Address; environment: Environment }>(
    sql`with noted as (
        insert into lookup (key_id, user_address, at)
        select * from unnest(${noted.keyIds}::text[], ${noted.users}::text[], ${noted.minutes}::bigint[])
        on conflict do nothing)
      select user_address as user, environment, field, '0x' || encode(leaf, 'hex') as leaf,
        encode(opening, 'hex') as opening, expires_at as "expiresAt", is_revoked as "isRevoked"
      from verified_leaf where opening = any(${openings}::bytea[]) and is_attested`,
  );
  // An opening belongs to at most one leaf, because its pepper is random.
  const known = new Map(rows.map((row) => [row.opening, row]));
  return questions.map(({ user, environment, openings: asked }) =>
    asked
      .map((opening) => known.get(opening))
      .filter((row) => row?.user === user && row.environment === environment)
      .filter((row) => row !== undefined),
  );
}

/** When the attested leaves of these fields of a user expire or have expired, the latest first. */
export async function listLeafEnds(
  db: Queryable,
  { user, environment, fields }: FieldsQuestion,
): Promise<{ field: FieldName; expiresAt: number }[]> {
  return db.query<{ field: FieldName; expiresAt: number }>(
    sql`select distinct field, expires_at as "expiresAt" from verified_leaf
      where user_address = ${user} and environment = ${environment} and field = any(${fields}::text[])
        and is_attested
      order by expires_at desc, field`,
  );
}

/** Those of the leaves that are valid at `now`. */
export async function listLiveLeaves(
  db: Queryable,
  leaves: readonly Hex32[],
  now: number,
): Promise<Hex32[]> {
  const rows = await db.query<{ leaf: Hex32 }>(
    sql`select '0x' || encode(leaf, 'hex') as leaf from verified_leaf
      where leaf = any(${leaves.map(bufferOfHex)}::bytea[]) and counts and expires_at > ${now}`,
  );
  return rows.map((row) => row.leaf);
}

/** A leaf with the tree that contains it, and the transaction that attested that. */
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

/** The attested ones among these leaves of a user, newest credential first. */
export async function listProofRows<Field extends string = FieldName>(
  db: Queryable,
  {
    user,
    environment,
    leaves,
  }: { user: Address; environment: Environment; leaves: readonly Hex32[] },
): Promise<ProofRow<Field>[]> {
  return db.query<ProofRow<Field>>(
    sql`select credential_leaf.field, '0x' || encode(credential_leaf.leaf, 'hex') as leaf,
        '0x' || encode(credential_leaf.commitment, 'hex') as commitment, credential_leaf.expires_at as "expiresAt",
        '0x' || encode(credential.root, 'hex') as root, credential.tree, issuer.address as issuer,
        '0x' || encode(credential_batch.transaction_hash, 'hex') as "transactionHash"
      from credential_leaf
        join credential on credential.id = credential_leaf.credential_id
        join issuer on issuer.id = credential.issuer_id
        join credential_batch on credential_batch.id = credential.attest_batch_id
      where credential_leaf.leaf = any(${leaves.map(bufferOfHex)}::bytea[]) and credential.user_address = ${user}
        and credential.environment = ${environment} and credential.attested_at is not null
      order by credential.id desc, credential_leaf.field`,
  );
}

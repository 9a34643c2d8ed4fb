import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { columns, type Queryable, sql } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";
import { bufferOfHex, joinHashes } from "../platform/hex.ts";
import { lastUuid } from "../platform/ids.ts";
import type { CredentialTree, EndedReason } from "./credential.ts";

/** A credential without its values. */
export interface CredentialRow {
  readonly id: string;
  readonly issuerId: string;
  readonly environment: Environment;
  readonly user: Address;
  readonly document: string;
  readonly root: Hex32;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly collectedAt: number | null;
  readonly attestedAt: number | null;
  readonly endedReason: EndedReason | null;
}

/**
 * The `document` of a credential that is a company record; its holder is the business. A parameter in statements that
 * find the credential by user or id, not a literal ({@link sql}): otherwise, if nearly all credentials are company
 * records, PostgreSQL reads all those of persons by their partial index.
 */
export const companyDocument = "COMPANY";

const credentialColumns = columns`
  credential.id, issuer_id as "issuerId", credential.environment, user_address as "user", document,
  '0x' || encode(root, 'hex') as root, credential.created_at as "createdAt", expires_at as "expiresAt",
  collected_at as "collectedAt", attested_at as "attestedAt", ended_reason as "endedReason"`;

export interface NewCredential {
  readonly id: string;
  readonly issuerId: string;
  readonly environment: Environment;
  readonly user: Address;
  readonly document: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly planted: CredentialTree<string>;
  /** Null if the values are stored elsewhere. */
  readonly valuesSealed: Buffer | null;
}

/**
 * Inserts a credential if its issuer is trusted according to the database: since the caller's key was checked, a slow
 * body may have taken a minute to arrive, and the issuer may have been distrusted.
 *
 * @returns false if the issuer is not trusted any more; then nothing is inserted
 */
export async function insertCredential(tx: Queryable, made: NewCredential): Promise<boolean> {
  const { leaves, tree, root } = made.planted;
  const rows = await tx.query(
    sql`insert into credential (id, issuer_id, environment, user_address, document, root, tree, values_sealed,
        created_at, expires_at)
      select ${made.id}::uuid, issuer.id, ${made.environment}, ${made.user}, ${made.document}, ${bufferOfHex(root)}::bytea,
        ${joinHashes(tree)}::bytea, ${made.valuesSealed}::bytea, ${made.createdAt}::bigint,
        ${made.expiresAt}::bigint
      from issuer where issuer.id = ${made.issuerId} and (distrusted_from is null or distrusted_from > ${made.createdAt})
      returning id`,
  );
  if (rows.length === 0) return false;
  await tx.query(
    sql`insert into credential_leaf (credential_id, field, leaf, commitment, opening, expires_at)
      select ${made.id}, field, leaf, commitment, opening, expires_at
      from unnest(${leaves.map(({ field }) => field)}::text[], ${leaves.map(({ leaf }) => bufferOfHex(leaf))}::bytea[],
        ${leaves.map(({ commitment }) => bufferOfHex(commitment))}::bytea[],
        ${leaves.map(({ opening }) => `\\x${opening}`)}::bytea[], ${leaves.map(({ expiresAt }) => expiresAt)}::bigint[])
        as made (field, leaf, commitment, opening, expires_at)`,
  );
  return true;
}

/** A credential of a user; does not find company records. */
export async function findCredential(db: Queryable, id: string): Promise<CredentialRow | null> {
  const [row] = await db.query<CredentialRow>(
    sql`select ${credentialColumns} from credential where id = ${id} and document <> ${companyDocument}`,
  );
  return row ?? null;
}

/** The root of a credential or company record. */
async function findRoot(db: Queryable, id: string): Promise<Hex32 | null> {
  const [row] = await db.query<{ root: Hex32 }>(
    sql`select '0x' || encode(root, 'hex') as root from credential where id = ${id}`,
  );
  return row?.root ?? null;
}

/** Whether one of these credentials or company records has not been attested yet. */
export async function hasUnattested(db: Queryable, ids: readonly string[]): Promise<boolean> {
  const waiting = await db.query(
    sql`select from credential where id = any(${ids}::uuid[]) and attested_at is null limit 1`,
  );
  return waiting.length > 0;
}

/** The credentials of one issuer, newest first, without company records. */
export async function listIssued(
  db: Queryable,
  issuerId: string,
  page: { user: Address | null; before: string | null; limit: number },
): Promise<CredentialRow[]> {
  const { user, before, limit } = { ...page, before: page.before ?? lastUuid };
  // Two statements, because a single one would have one plan, which reads everything that the issuer ever issued.
  return db.query<CredentialRow>(
    user === null
      ? sql`select ${credentialColumns} from credential
          where issuer_id = ${issuerId} and document <> 'COMPANY' and id < ${before}
          order by id desc limit ${limit}`
      : sql`select ${credentialColumns} from credential
          where user_address = ${user} and issuer_id = ${issuerId} and document <> ${companyDocument} and id < ${before}
          order by id desc limit ${limit}`,
  );
}

/** A credential as its user sees it. */
export interface OwnCredentialRow extends CredentialRow {
  readonly issuerName: string;
  readonly issuerAddress: Address;
  readonly distrustedFrom: number | null;
}

/** The credentials of one user, newest first, without the values. */
export async function listOwned(
  db: Queryable,
  user: Address,
  page: { before: string | null; limit: number },
): Promise<OwnCredentialRow[]> {
  return db.query<OwnCredentialRow>(
    sql`select ${credentialColumns}, issuer.name as "issuerName", issuer.address as "issuerAddress",
        distrusted_from as "distrustedFrom"
      from credential join issuer on issuer.id = issuer_id
      where user_address = ${user} and document <> ${companyDocument} and credential.id < ${page.before ?? lastUuid}
      order by credential.id desc limit ${page.limit}`,
  );
}

/** One field of a credential. */
export interface LeafRow<Field extends string = FieldName> {
  readonly credentialId: string;
  readonly field: Field;
  readonly leaf: Hex32;
  readonly expiresAt: number;
}

export async function listLeaves<Field extends string = FieldName>(
  db: Queryable,
  ids: readonly string[],
): Promise<LeafRow<Field>[]> {
  return db.query<LeafRow<Field>>(
    sql`select credential_id as "credentialId", field, '0x' || encode(leaf, 'hex') as leaf, expires_at as "expiresAt"
      from credential_leaf where credential_id = any(${ids}::uuid[]) order by credential_id, field`,
  );
}

/** The size in bytes of the values that were not collected yet, by credential. */
export async function listSealedSizes(
  db: Queryable,
  ids: readonly string[],
): Promise<{ id: string; bytes: number }[]> {
  return db.query<{ id: string; bytes: number }>(
    sql`select id, length(values_sealed) as bytes from credential
      where id = any(${ids}::uuid[]) and values_sealed is not null`,
  );
}

/** Values that the wallet has not collected yet. */
export interface SealedRow {
  readonly id: string;
  readonly tree: Buffer;
  readonly valuesSealed: Buffer;
}

export async function listSealed(db: Queryable, ids: readonly string[]): Promise<SealedRow[]> {
  return db.query<SealedRow>(
    sql`select id, tree, values_sealed as "valuesSealed" from credential
      where id = any(${ids}::uuid[]) and values_sealed is not null`,
  );
}

/** Deletes the values, if there are any. @returns false if this user has no such credential */
export async function collectCredential(
  db: Queryable,
  { id, user, now }: { id: string; user: Address; now: number },
): Promise<boolean> {
  const rows = await db.query(
    sql`update credential set values_sealed = null, collected_at = coalesce(collected_at, ${now})
      where id = ${id} and user_address = ${user} and document <> ${companyDocument} returning id`,
  );
  return rows.length === 1;
}

/**
 * Ends credentials that have not ended, deletes their values, and requests their revocation on chain.
 *
 * @returns how many ended
 */
export async function endCredentials(
  tx: Queryable,
  given: { ids: readonly string[]; reason: EndedReason; now: number },
): Promise<number> {
  const rows = await tx.query(
    sql`with ended as (
        update credential set ended_at = ${given.now}, ended_reason = ${given.reason}, values_sealed = null,
          invalidated_at = ${given.now}
        where id = any(${given.ids}::uuid[]) and ended_at is null
        returning id, issuer_id, root, attest_batch_id
      ), queued as (
        insert into credential_revocation (root, issuer_id, created_at)
        select root, issuer_id, ${given.now}::bigint from ended where attest_batch_id is not null
        on conflict do nothing
      )
      select id from ended`,
  );
  return rows.length;
}

/** The leaves of these credentials that were attested, so that they may have been valid; none of company records. */
export async function listAttestedLeaves(
  tx: Queryable,
  ids: readonly string[],
): Promise<{ leaf: Hex32; user: Address; field: FieldName }[]> {
  return tx.query<{ leaf: Hex32; user: Address; field: FieldName }>(
    sql`select '0x' || encode(leaf, 'hex') as leaf, user_address as user, field
      from credential_leaf join credential on credential.id = credential_id
      where credential_id = any(${ids}::uuid[]) and attested_at is not null and document <> ${companyDocument}`,
  );
}

/** Locks credentials whose values nobody has collected, issued before `before`. */
export async function lockUncollected(
  tx: Queryable,
  { before, limit }: { before: number; limit: number },
): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select id from credential where values_sealed is not null and ended_at is null and created_at <= ${before}
      order by created_at limit ${limit} for update skip locked`,
  );
  return rows.map((row) => row.id);
}

/** Locks credentials that a distrust has invalidated and that have not been announced yet. */
export async function lockDistrusted(tx: Queryable, limit: number): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select distrusted.id from issuer cross join lateral (
        select id from credential
        where issuer_id = issuer.id and invalidated_at is null and attested_at >= issuer.distrusted_from
        order by attested_at limit ${limit} for update skip locked) as distrusted
      where issuer.distrusted_from is not null limit ${limit}`,
  );
  return rows.map((row) => row.id);
}

/** Records that it was announced that these credentials are invalid. */
export async function noteInvalidated(
  tx: Queryable,
  ids: readonly string[],
  now: number,
): Promise<void> {
  await tx.query(
    sql`update credential set invalidated_at = ${now} where id = any(${ids}::uuid[]) and invalidated_at is null`,
  );
}

/** Deletes everything of a user, and has roots that may be on chain revoked. @returns how many credentials */
export async function deleteOfUser(tx: Queryable, user: Address, now: number): Promise<number> {
  await tx.query(sql`delete from email_verification where user_address = ${user}`);
  // One statement, so that a root that is being attested at the same time is seen in its final state.
  const rows = await tx.query(
    sql`with deleted as (
        delete from credential where user_address = ${user} and document <> ${companyDocument}
        returning id, root, issuer_id, attest_batch_id, ended_at
      ), queued as (
        insert into credential_revocation (root, issuer_id, created_at)
        select root, issuer_id, ${now}::bigint from deleted where attest_batch_id is not null and ended_at is null
        on conflict do nothing
      )
      select id from deleted`,
  );
  return rows.length;
}

/** Locks the credentials of a user that have not ended, by id. */
export async function lockOfUser(tx: Queryable, user: Address): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`select id from credential where user_address = ${user} and document <> ${companyDocument} and ended_at is null
      order by id for update`,
  );
  return rows.map(({ id }) => id);
}

/** A remembered call, and what it issued. */
export interface KnownCall {
  readonly credentialId: string;
  readonly bodyMac: Buffer;
  readonly root: Hex32;
}

/** @param before keys that were taken by then have expired */
export async function findIdempotencyKey(
  db: Queryable,
  call: { issuerId: string; key: string },
  before: number,
): Promise<KnownCall | null> {
  const [known] = await db.query<KnownCall>(
    sql`select credential_id as "credentialId", body_mac as "bodyMac", '0x' || encode(root, 'hex') as root
      from issuer_idempotency join credential on credential.id = credential_id
      where issuer_idempotency.issuer_id = ${call.issuerId} and key = ${call.key}
        and issuer_idempotency.created_at > ${before}`,
  );
  return known ?? null;
}

/**
 * Stores the key of a call, unless it is in use.
 *
 * @param before keys that were taken by then have expired, and are taken again
 * @returns null if it was stored; otherwise the call that uses it, whose row is locked until the transaction ends
 */
export async function takeIdempotencyKey(
  tx: Queryable,
  given: {
    issuerId: string;
    key: string;
    bodyMac: Buffer;
    credentialId: string;
    now: number;
  },
  before: number,
): Promise<KnownCall | null> {
  const [known] = await tx.query<Omit<KnownCall, "root">>(
    sql`insert into issuer_idempotency as held (issuer_id, key, body_mac, credential_id, created_at)
      values (${given.issuerId}, ${given.key}, ${given.bodyMac}, ${given.credentialId}, ${given.now})
      on conflict (issuer_id, key) do update set (body_mac, credential_id, created_at) = (
        select case when is_over then excluded.body_mac else held.body_mac end,
          case when is_over then excluded.credential_id else held.credential_id end,
          case when is_over then excluded.created_at else held.created_at end
        from (values (held.created_at <= ${before})) as kept (is_over))
      returning credential_id as "credentialId", body_mac as "bodyMac"`,
  );
  if (known === undefined) throw new Error("a key is neither free nor taken");
  if (known.credentialId === given.credentialId) return null;
  const root = await findRoot(tx, known.credentialId);
  if (root === null) throw new Error("a key outlived its credential");
  return { ...known, root };
}

export const deleteIdempotencyKeys = purgeOf({
  table: "issuer_idempotency",
  key: "ctid",
  time: "created_at",
  isInclusive: true,
});

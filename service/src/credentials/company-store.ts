import type { Address, BusinessFieldName, Hex32 } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { columns, type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";
import { lastUuid } from "../platform/ids.ts";
import type { EndedReason } from "./credential.ts";

export interface NewCompanyRecord {
  readonly credentialId: string;
  readonly business: Address;
  readonly asOf: number;
  readonly vouches: boolean;
  /** Null if the record does not say the type of the company. */
  readonly isSoleProprietor: boolean | null;
  readonly fields: readonly NewCompanyField[];
}

interface NewCompanyField {
  readonly id: string;
  readonly name: BusinessFieldName;
  readonly subject: string;
  readonly leaf: Hex32;
  readonly valueSealed: Buffer;
}

export async function insertRecord(tx: Queryable, made: NewCompanyRecord): Promise<void> {
  const { fields } = made;
  await tx.query(
    sql`insert into company_record (credential_id, business, as_of, vouches, is_sole_proprietor)
      values (${made.credentialId}, ${made.business}, ${made.asOf}, ${made.vouches}, ${made.isSoleProprietor})`,
  );
  await tx.query(
    sql`insert into company_field (id, credential_id, name, subject, leaf, value_sealed)
      select id, ${made.credentialId}, name, subject, leaf, value_sealed
      from unnest(${fields.map(({ id }) => id)}::uuid[], ${fields.map(({ name }) => name)}::text[],
        ${fields.map(({ subject }) => subject)}::text[], ${fields.map(({ leaf }) => bufferOfHex(leaf))}::bytea[],
        ${fields.map(({ valueSealed }) => valueSealed)}::bytea[]) as made (id, name, subject, leaf, value_sealed)`,
  );
}

/** Which live fields of one business. */
export interface CompanyQuestion {
  readonly environment: Environment;
  readonly business: Address;
  readonly names: readonly BusinessFieldName[];
  readonly now: number;
}

/** One live field, its value still sealed. */
export interface CompanyFieldRow {
  readonly id: string;
  readonly credentialId: string;
  readonly name: BusinessFieldName;
  readonly subject: string;
  readonly leaf: Hex32;
  readonly valueSealed: Buffer;
  readonly expiresAt: number;
  readonly asOf: number;
  readonly issuerName: string;
}

/** The newest valid field of every name and subject, sorted by these. */
export async function listLiveFields(
  db: Queryable,
  { environment, business, names, now }: CompanyQuestion,
): Promise<CompanyFieldRow[]> {
  return db.query<CompanyFieldRow>(
    sql`select distinct on (company_field.name, subject) company_field.id,
        company_field.credential_id as "credentialId", company_field.name, subject,
        '0x' || encode(company_field.leaf, 'hex') as leaf, value_sealed as "valueSealed",
        verified_leaf.expires_at as "expiresAt", as_of as "asOf", issuer.name as "issuerName"
      from company_record
        join company_field on company_field.credential_id = company_record.credential_id
        join verified_leaf on verified_leaf.leaf = company_field.leaf
        join credential on credential.id = company_record.credential_id
        join issuer on issuer.id = credential.issuer_id
      where business = ${business} and verified_leaf.environment = ${environment}
        and company_field.name = any(${names}::text[]) and counts and verified_leaf.expires_at > ${now}
      order by company_field.name, subject, company_field.credential_id desc`,
  );
}

/** Those of the names that have a valid value. */
export async function listLiveNames(
  db: Queryable,
  { environment, business, names, now }: CompanyQuestion,
): Promise<BusinessFieldName[]> {
  const rows = await db.query<{ name: BusinessFieldName }>(
    sql`select distinct name
      from company_record
        join company_field on company_field.credential_id = company_record.credential_id
        join verified_leaf on verified_leaf.leaf = company_field.leaf
      where business = ${business} and environment = ${environment} and name = any(${names}::text[])
        and counts and expires_at > ${now}`,
  );
  return rows.map(({ name }) => name);
}

/**
 * Whether the business is a single person, so that its fields are personal data (decisions section 6, Tiers). This is
 * decided by the newest company type that was attested and not revoked, even if it has expired. True if it is not known
 * any more which type that was; false if there never was one.
 */
export async function isSoleProprietor(
  db: Queryable,
  { environment, business }: Pick<CompanyQuestion, "environment" | "business">,
): Promise<boolean> {
  const [row] = await db.query<{ isSole: boolean }>(
    sql`select coalesce(is_sole_proprietor, true) as "isSole"
      from company_record join verified_leaf on verified_leaf.credential_id = company_record.credential_id
      where business = ${business} and environment = ${environment} and field = 'BUSINESS_COMPANY_TYPE'
        and is_attested and not is_revoked
      order by company_record.credential_id desc limit 1`,
  );
  return row?.isSole === true;
}

/** An attested leaf, with the facts that decide its status. */
export interface CompanyLeafRow {
  /** Name and subject, as the leaf has them. */
  readonly field: string;
  readonly leaf: Hex32;
  readonly expiresAt: number;
  readonly isRevoked: boolean;
}

/** Those of the leaves that belong to records of this business. */
export async function listKnownLeaves(
  db: Queryable,
  given: { environment: Environment; business: Address; leaves: readonly Hex32[] },
): Promise<CompanyLeafRow[]> {
  return db.query<CompanyLeafRow>(
    sql`select field, '0x' || encode(leaf, 'hex') as leaf, expires_at as "expiresAt", is_revoked as "isRevoked"
      from verified_leaf join company_record on company_record.credential_id = verified_leaf.credential_id
      where leaf = any(${given.leaves.map(bufferOfHex)}::bytea[]) and business = ${given.business}
        and environment = ${given.environment} and is_attested`,
  );
}

/** A record without its values. */
export interface CompanyRecordRow {
  readonly id: string;
  readonly issuerId: string;
  readonly environment: Environment;
  readonly business: Address;
  readonly root: Hex32;
  readonly asOf: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly attestedAt: number | null;
  readonly endedReason: EndedReason | null;
}

const recordColumns = columns`
  id, issuer_id as "issuerId", environment, business, '0x' || encode(root, 'hex') as root, as_of as "asOf",
  created_at as "createdAt", expires_at as "expiresAt", attested_at as "attestedAt", ended_reason as "endedReason"`;

/** A record of one issuer. */
export async function findRecord(
  db: Queryable,
  issuerId: string,
  id: string,
): Promise<CompanyRecordRow | null> {
  const [row] = await db.query<CompanyRecordRow>(
    sql`select ${recordColumns} from company_record join credential on credential.id = credential_id
      where credential_id = ${id} and issuer_id = ${issuerId}`,
  );
  return row ?? null;
}

/** The records of one issuer, newest first. */
export async function listRecords(
  db: Queryable,
  issuerId: string,
  page: { business: Address | null; before: string | null; limit: number },
): Promise<CompanyRecordRow[]> {
  const { business, before, limit } = { ...page, before: page.before ?? lastUuid };
  // Two statements, because a single one would have one plan, which reads everything that the issuer ever issued.
  return db.query<CompanyRecordRow>(
    business === null
      ? sql`select ${recordColumns} from company_record join credential on credential.id = credential_id
          where issuer_id = ${issuerId} and document = 'COMPANY' and id < ${before}
          order by id desc limit ${limit}`
      : sql`select ${recordColumns} from company_record join credential on credential.id = credential_id
          where business = ${business} and issuer_id = ${issuerId} and credential_id < ${before}
          order by credential_id desc limit ${limit}`,
  );
}

/** A record that has ended. */
export interface OverRecord {
  readonly id: string;
  readonly business: Address;
  readonly environment: Environment;
}

/**
 * A record to be examined again: new, expired, or of an issuer that has been distrusted since. Until its attestation is
 * final it may turn out to be older than the distrust, so it is not over until that is known, unless it was sent too
 * late for that.
 */
export interface DueRecord extends OverRecord {
  readonly isOver: boolean;
}

export async function listRecordsDue(
  db: Queryable,
  { now, limit }: { now: number; limit: number },
): Promise<DueRecord[]> {
  return db.query<DueRecord>(
    sql`select credential_id as id, business, credential.environment,
        (credential.ended_at is not null or expires_at <= ${now}
          or earliest_attested(attested_at, attest_batch_id, ${now}) >= distrusted_from) is true as "isOver"
      from company_record join credential on credential.id = credential_id join issuer on issuer.id = issuer_id
      where company_record.ended_at is null and due_at <= ${now}
      order by due_at limit ${limit}`,
  );
}

/** When to examine a record again if it is not known yet when it was attested. */
const undecidedSeconds = 30;

/** Postpones records that are not over until they expire; waits for a distrust that is being written. */
export async function putBackStanding(
  db: Queryable,
  ids: readonly string[],
  now: number,
): Promise<void> {
  await db.query(
    sql`with standing as (
        select credential_id as id,
          least(expires_at, case when attested_at is null and distrusted_from is not null
            then greatest(distrusted_from, ${now + undecidedSeconds}) end) as due_at
        from company_record join credential on credential.id = credential_id join issuer on issuer.id = issuer_id
        where credential_id = any(${ids}::uuid[]) and credential.ended_at is null and expires_at > ${now}
          and (earliest_attested(attested_at, attest_batch_id, ${now}) >= distrusted_from) is not true
        for share of issuer
      )
      update company_record set due_at = standing.due_at from standing where credential_id = standing.id`,
  );
}

/** Makes the records of these issuers due to be examined again, in the transaction that distrusts them. */
export async function makeRecordsDue(tx: Queryable, issuerIds: readonly string[]): Promise<void> {
  await tx.query(
    sql`update company_record set due_at = 0 from credential
      where credential.id = credential_id and issuer_id = any(${issuerIds}::uuid[])
        and company_record.ended_at is null`,
  );
}

/** Notes that records have ended, for any reason. @returns whether one of them vouched for its business */
export async function noteRecordsOver(
  tx: Queryable,
  ids: readonly string[],
  now: number,
): Promise<boolean> {
  const rows = await tx.query<{ vouches: boolean }>(
    sql`update company_record set ended_at = ${now}
      where credential_id = any(${ids}::uuid[]) and ended_at is null returning vouches`,
  );
  return rows.some(({ vouches }) => vouches);
}

/** Whether a record that has not ended vouches for the business, attested or not yet. */
export async function isVouchedFor(
  tx: Queryable,
  { business, environment, now }: { business: Address; environment: Environment; now: number },
): Promise<boolean> {
  const [row] = await tx.query<{ stands: boolean }>(
    sql`select exists (
        select 1 from company_record join credential on credential.id = credential_id
          join issuer on issuer.id = issuer_id
        where business = ${business} and credential.environment = ${environment} and vouches
          and company_record.ended_at is null and credential.ended_at is null and expires_at > ${now}
          and (earliest_attested(attested_at, attest_batch_id, ${now}) >= distrusted_from) is not true
      ) as stands`,
  );
  return row?.stands === true;
}

/**
 * Deletes the values of records that ended at or before `before`. The lateral join makes PostgreSQL look them up record
 * by record: a plain join would read the values of all records.
 *
 * @returns how many were deleted
 */
export async function deleteValues(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    delete from company_field where ctid = any(array(
      select held.ctid from company_record cross join lateral (
        select ctid from company_field where credential_id = company_record.credential_id for update skip locked) as held
      where ended_at <= ${before} and not is_emptied order by ended_at limit ${limit}))
    returning 1 as gone`);
  return rows.length;
}

/** Notes which ended records have no value left, so that {@link deleteValues} skips them. @returns how many */
export async function noteEmptied(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(sql`
    update company_record set is_emptied = true where credential_id = any(array(
      select credential_id from company_record as record
      where ended_at <= ${before} and not is_emptied
        and not exists (select from company_field where credential_id = record.credential_id offset 0)
      order by ended_at limit ${limit} for no key update skip locked))
    returning 1 as noted`);
  return rows.length;
}

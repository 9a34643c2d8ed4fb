import type { Address } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { columns, type Queryable, sql } from "../platform/database/db.ts";
import type { BuiltInKind, Issuer } from "./issuer.ts";

/** Tells all processes which key of an issuer was revoked; an empty payload, that issuers changed, as by a distrust. */
export const issuerChannel = "issuer-key";

const issuerColumns = columns`
  issuer.id, kind, issuer.name, address, environment, issuer.created_at as "createdAt",
  role_granted_at as "roleGrantedAt", distrusted_from as "distrustedFrom"`;

/** @returns false if there is already an issuer with that address, or of that built-in kind and environment */
export async function insertIssuer(
  tx: Queryable,
  issuer: Omit<Issuer, "roleGrantedAt" | "distrustedFrom">,
): Promise<boolean> {
  const rows = await tx.query(
    sql`insert into issuer (id, kind, name, address, environment, created_at)
      values (${issuer.id}, ${issuer.kind}, ${issuer.name}, ${issuer.address}, ${issuer.environment}, ${issuer.createdAt})
      on conflict do nothing returning id`,
  );
  return rows.length === 1;
}

export async function findIssuer(db: Queryable, id: string): Promise<Issuer | null> {
  const [issuer] = await db.query<Issuer>(
    sql`select ${issuerColumns} from issuer where id = ${id}`,
  );
  return issuer ?? null;
}

export async function findBuiltInIssuer(
  db: Queryable,
  kind: BuiltInKind,
  environment: Environment,
): Promise<Issuer | null> {
  const [issuer] = await db.query<Issuer>(
    sql`select ${issuerColumns} from issuer where kind = ${kind} and environment = ${environment}`,
  );
  return issuer ?? null;
}

/** All issuers in the order of their creation. */
export async function listIssuers(db: Queryable): Promise<Issuer[]> {
  return db.query<Issuer>(sql`select ${issuerColumns} from issuer order by created_at, id`);
}

/** Keeps an earlier time if there is one. @returns the time that applies */
export async function distrustIssuer(
  tx: Queryable,
  id: string,
  from: number,
): Promise<number | null> {
  const [row] = await tx.query<{ distrusted_from: number }>(
    sql`update issuer set distrusted_from = least(distrusted_from, ${from}), distrust_due_at = 0 where id = ${id}
      returning distrusted_from`,
  );
  await announceIssuers(tx);
  return row?.distrusted_from ?? null;
}

/** What a distrust of an issuer invalidates. */
export interface Discounted {
  /** Credentials and company records that are valid now, or would be once they are attested. */
  readonly credentials: number;
  /** People and businesses who hold them. */
  readonly holders: number;
}

/** Counts what a distrust as of `from` invalidates, without what an earlier distrust has invalidated already. */
export async function countDiscounted(
  db: Queryable,
  { issuerId, from, now }: { issuerId: string; from: number; now: number },
): Promise<Discounted> {
  const [row] = await db.query<Discounted>(
    sql`select count(*)::int as credentials, count(distinct user_address)::int as holders
      from credential join issuer on issuer.id = issuer_id
      where issuer_id = ${issuerId} and invalidated_at is null and ended_at is null and expires_at > ${now}
        and (attested_at is null or attested_at >= ${from})
        and (distrusted_from is null or attested_at < distrusted_from)`,
  );
  return row ?? { credentials: 0, holders: 0 };
}

/** @returns the ids of those that were not distrusted as a whole before */
export async function distrustDemoIssuers(tx: Queryable): Promise<string[]> {
  const rows = await tx.query<{ id: string }>(
    sql`update issuer set distrusted_from = 1 where kind = 'demo' and distrusted_from is distinct from 1 returning id`,
  );
  return rows.map((row) => row.id);
}

/** What has to be written to the chain about an issuer. */
export interface IssuerDue {
  readonly id: string;
  readonly address: Address;
  readonly needsRole: boolean;
  /** Null if the chain has the distrust already, or there is none. */
  readonly distrustedFrom: number | null;
  /** How many transactions for its role were reverted, or made obsolete by a change of the operator's account. */
  readonly roleFailures: number;
  /** How many transactions for its distrust were reverted. */
  readonly distrustFailures: number;
}

/** Locks issuers whose role or distrust is not on chain yet; rows that another process has locked are skipped. */
export async function lockIssuersDue(tx: Queryable, now: number): Promise<IssuerDue[]> {
  return tx.query<IssuerDue>(
    sql`select id, address, needs_role as "needsRole",
        case when needs_distrust then distrusted_from end as "distrustedFrom",
        role_failures as "roleFailures", distrust_failures as "distrustFailures"
      from issuer, lateral (select role_requested_at is null and role_due_at <= ${now} as needs_role,
        distrusted_from is distinct from distrust_sent_from and distrust_due_at <= ${now} as needs_distrust) as due
      where needs_role or needs_distrust
      order by created_at, id limit 100 for update of issuer skip locked`,
  );
}

/** The issuers whose distrust still has to be written to the chain. */
export async function listDistrustDue(
  db: Queryable,
  now: number,
): Promise<Pick<Issuer, "id" | "address">[]> {
  return db.query(
    sql`select id, address from issuer
      where distrusted_from is distinct from distrust_sent_from and distrust_due_at <= ${now}
      order by created_at, id limit 100`,
  );
}

/** Records that the chain has a distrust as of `from`, no matter who wrote it, if that covers the time stored here. */
export async function noteDistrustKnown(
  db: Queryable,
  { id, from }: { id: string; from: number },
): Promise<void> {
  await db.query(
    sql`update issuer set distrust_sent_from = distrusted_from where id = ${id} and distrusted_from >= ${from}`,
  );
}

export async function noteIssuerSent(
  tx: Queryable,
  sent: IssuerDue,
  { now, operator }: { now: number; operator: Address },
): Promise<void> {
  await tx.query(
    sql`update issuer set role_requested_at = case when ${sent.needsRole} then ${now} else role_requested_at end,
        role_account = case when ${sent.needsRole} then ${operator} else role_account end,
        distrust_sent_from = coalesce(${sent.distrustedFrom}, distrust_sent_from)
      where id = ${sent.id}`,
  );
}

/** An issuer whose role was requested for a former account of the operator. */
export interface ForeignRole {
  readonly id: string;
  readonly address: Address;
  /** The former account; null if it is not known. */
  readonly account: Address | null;
  /** How many transactions for its role came before the next one. */
  readonly failures: number;
}

export async function hasForeignRoles(db: Queryable, operator: Address): Promise<boolean> {
  const rows = await db.query(
    sql`select from issuer where role_requested_at is not null and role_account is distinct from ${operator} limit 1`,
  );
  return rows.length > 0;
}

/** Makes the roles of former accounts due again, for this account. */
export async function takeForeignRoles(tx: Queryable, operator: Address): Promise<ForeignRole[]> {
  return tx.query<ForeignRole>(
    sql`with held as (
        select id, role_account from issuer
        where role_requested_at is not null and role_account is distinct from ${operator}
        order by created_at, id limit 100 for update skip locked)
      update issuer set role_account = ${operator}, role_requested_at = null, role_granted_at = null,
        role_failures = role_failures + 1, role_reverts = 0, role_due_at = 0
      from held where issuer.id = held.id
      returning issuer.id, address, held.role_account as account, role_failures as failures`,
  );
}

/**
 * Records that a former account still has the role, so that the role is moved away from it once more. Transactions that
 * were queued for the role before are then obsolete.
 *
 * @returns false if that account is not a former one: the role is requested for it
 */
export async function noteRoleKept(
  tx: Queryable,
  { id, account, now }: { id: string; account: Address; now: number },
): Promise<boolean> {
  const rows = await tx.query(
    sql`update issuer set role_account = ${account}, role_requested_at = ${now}, role_failures = role_failures + 1
      where id = ${id} and role_account <> ${account} returning id`,
  );
  return rows.length === 1;
}

/** A transaction about an issuer that was reverted. */
interface RevertedIssuer {
  readonly id: string;
  /** How many transactions of its kind came before it. */
  readonly failures: number;
  /** Seconds until the next attempt, by the number of reverts. */
  readonly pauses: readonly number[];
  readonly now: number;
}

/** Makes the role due again after a pause, unless this revert was recorded already. */
export async function putOffRole(tx: Queryable, reverted: RevertedIssuer): Promise<void> {
  const { id, failures, pauses, now } = reverted;
  await tx.query(
    sql`update issuer set role_requested_at = null, role_failures = role_failures + 1,
        role_reverts = role_reverts + 1,
        role_due_at = ${now} + (${pauses}::bigint[])[least(role_reverts + 1, ${pauses.length})]
      where id = ${id} and role_failures = ${failures} and role_granted_at is null`,
  );
}

/** Makes the distrust due again after a pause, unless this revert was recorded, or an earlier time replaced it. */
export async function putOffDistrust(
  tx: Queryable,
  reverted: RevertedIssuer & { readonly from: number },
): Promise<void> {
  const { id, failures, pauses, now, from } = reverted;
  await tx.query(
    sql`update issuer set distrust_sent_from = null, distrust_failures = distrust_failures + 1,
        distrust_due_at = ${now} + (${pauses}::bigint[])[least(distrust_failures + 1, ${pauses.length})]
      where id = ${id} and distrust_failures = ${failures} and distrust_sent_from = ${from}
        and distrusted_from = ${from}`,
  );
}

/** @param granted.failures as in the transaction's subject: one with a lower number was for a former account */
export async function grantRoles(
  tx: Queryable,
  granted: readonly { id: string; at: number; failures: number }[],
): Promise<void> {
  await tx.query(
    sql`update issuer set role_granted_at = done.at
      from unnest(${granted.map(({ id }) => id)}::uuid[], ${granted.map(({ at }) => at)}::bigint[],
        ${granted.map(({ failures }) => failures)}::integer[]) as done (id, at, failures)
      where issuer.id = done.id and role_failures = done.failures and role_granted_at is null`,
  );
}

/** A key as the operator sees it. */
export interface IssuerKeyRow {
  readonly id: string;
  readonly issuerId: string;
  readonly name: string;
  readonly createdAt: number;
  /** To the minute; null if it was never used. */
  readonly lastUsedAt: number | null;
}

const keyColumns = columns`
  id, issuer_id as "issuerId", name, created_at as "createdAt", last_used_at as "lastUsedAt"`;

export async function insertIssuerKey(
  tx: Queryable,
  key: Omit<IssuerKeyRow, "lastUsedAt"> & { mac: Buffer },
): Promise<void> {
  await tx.query(
    sql`insert into issuer_key (id, issuer_id, name, mac, created_at)
      values (${key.id}, ${key.issuerId}, ${key.name}, ${key.mac}, ${key.createdAt})`,
  );
  await announceKey(tx, key.id);
}

/** Locks the issuer, so that counting and changing its keys take turns. */
export async function lockIssuer(tx: Queryable, id: string): Promise<void> {
  await tx.query(sql`select id from issuer where id = ${id} for update`);
}

export async function listIssuerKeys(db: Queryable, issuerId: string): Promise<IssuerKeyRow[]> {
  return db.query<IssuerKeyRow>(
    sql`select ${keyColumns} from issuer_key
      where issuer_id = ${issuerId} and revoked_at is null order by created_at, id`,
  );
}

/** @returns the key, or null if there is no such live key */
export async function revokeIssuerKey(
  tx: Queryable,
  id: string,
  now: number,
): Promise<IssuerKeyRow | null> {
  const [row] = await tx.query<IssuerKeyRow>(
    sql`update issuer_key set revoked_at = ${now} where id = ${id} and revoked_at is null
      returning ${keyColumns}`,
  );
  await announceKey(tx, id);
  return row ?? null;
}

/** A live key with its issuer. */
export interface LiveIssuerKey {
  readonly mac: Buffer;
  readonly issuer: Issuer;
}

export async function findLiveIssuerKey(db: Queryable, id: string): Promise<LiveIssuerKey | null> {
  const [row] = await db.query<Issuer & { readonly mac: Buffer }>(
    sql`select ${issuerColumns}, mac from issuer_key join issuer on issuer.id = issuer_id
      where issuer_key.id = ${id} and revoked_at is null`,
  );
  if (row === undefined) return null;
  const { mac, ...issuer } = row;
  return { mac, issuer };
}

export async function recordIssuerKeyUses(
  db: Queryable,
  uses: readonly { id: string; at: number }[],
): Promise<void> {
  await db.query(
    sql`update issuer_key set last_used_at = greatest(last_used_at, seen.at)
      from unnest(${uses.map((use) => use.id)}::text[], ${uses.map((use) => use.at)}::bigint[]) as seen (id, at)
      where issuer_key.id = seen.id`,
  );
}

async function announceKey(tx: Queryable, id: string): Promise<void> {
  await tx.query(sql`select pg_notify(${issuerChannel}, ${id})`);
}

/** Makes all processes read the keys of all issuers again; that is cheap, because issuers rarely change. */
async function announceIssuers(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_notify(${issuerChannel}, '')`);
}

import type { Address } from "@svc/protocol";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import type { AuthorizationCode } from "./authorization-code.ts";
import type { ClaimSource } from "../business/business-claims.ts";
import { type SeatAnswer, seatOf } from "../business/business-seat.ts";
import { columnsOf, type OneTimeValue } from "./used-once-store.ts";

/** A token family, with all that tokens are made from. */
export interface FamilyRow extends ClaimSource {
  readonly userAddress: Address | null;
  readonly sessionId: string | null;
  readonly scope: string;
  readonly audience: readonly string[];
  /**
   * The business that its user acts for; null for a person's own login. The family is dead once the user has no seat in
   * it.
   */
  readonly business: string | null;
  readonly acr: string | null;
  readonly authenticatedAt: number | null;
  readonly dpopJkt: string | null;
  readonly expiresAt: number;
}

/** A family as a statement returns it. */
type Answered<Row extends FamilyRow> = Omit<Row, "seat"> & { readonly seat: SeatAnswer | null };

/** What a statement that spends one-time values returns in addition. */
interface Spent {
  /** Null where it found no family. */
  readonly id: string | null;
  readonly spent: readonly string[];
}

const familyColumns = columns`
  user_address as "userAddress", business, session_id as "sessionId", scope, audience, claims, acr,
  authenticated_at as "authenticatedAt", dpop_jkt as "dpopJkt", expires_at as "expiresAt"`;

/** The result of a statement, and the one-time values that it spent because they were fresh. */
export interface Spending<T> {
  readonly row: T | null;
  readonly spent: readonly string[];
}

export interface Redemption {
  readonly code: AuthorizationCode;
  readonly clientId: string;
  readonly redirectUri: string;
  /** Computed from the verifier; null when none was sent. */
  readonly codeChallenge: string | null;
  /** The audience that the token request asks for; must be part of what was granted. */
  readonly audience: readonly string[];
  /** The audiences that tokens of the client may have now; what was granted must be part of them. */
  readonly clientAudiences: readonly string[];
  readonly dpopJkt: string | null;
  readonly oneTime: readonly OneTimeValue[];
  readonly familyId: string;
  readonly refreshSha256: Buffer;
  readonly now: number;
  readonly accessSeconds: number;
  readonly refreshIdleSeconds: number;
  readonly refreshAbsoluteSeconds: number;
  /** As `refreshAbsoluteSeconds`, for a family of a business. */
  readonly businessAbsoluteSeconds: number;
}

export type RedeemedCode = FamilyRow & {
  readonly nonce: string | null;
  readonly hasRefresh: boolean;
};

/**
 * Turns a code into a family of tokens, once, in one statement that also spends the one-time values. Because of the
 * lock on the session, a logout at the same moment either comes first and is seen here, or sees the family.
 */
export async function redeemCode(db: Queryable, code: Redemption): Promise<Spending<RedeemedCode>> {
  const once = columnsOf(code.oneTime);
  const [answer] = await db.query<Answered<RedeemedCode> & Spent>(sql`
    with spent as (select spend_once(${once.kinds}, ${once.hashes}, ${once.expiries}) as kinds),
    redeemed as (
      update login set family_id = ${code.familyId}::uuid
      where id = ${code.code.loginId} and code_sha256 = ${code.code.sha256} and client_id = ${code.clientId} and family_id is null
        and code_expires_at > ${code.now} and request ->> 'redirectUri' = ${code.redirectUri}
        and request ->> 'codeChallenge' is not distinct from ${code.codeChallenge}::text
        and (request ->> 'dpopJkt' is null or request ->> 'dpopJkt' = ${code.dpopJkt}::text)
        and request -> 'audience' @> ${JSON.stringify(code.audience)}::jsonb
        and request -> 'audience' <@ ${JSON.stringify(code.clientAudiences)}::jsonb
        and (select cardinality(kinds) from spent) = ${once.count}
        and (session_id is null or exists (
          select from session where session.id = login.session_id and ended_at is null for share))
        and (business is null or lock_seat(business, claimed_by))
      returning id, client_id, claimed_by, business, claims, session_id, acr, approved_at, request ->> 'scope' as scope,
        array(select jsonb_array_elements_text(request -> 'audience')) as audience, request ->> 'nonce' as nonce,
        (request ->> 'wantsRefresh')::boolean as "hasRefresh",
        case when business is null then ${code.refreshAbsoluteSeconds}::bigint
          else least(${code.refreshAbsoluteSeconds}::bigint, ${code.businessAbsoluteSeconds}::bigint) end as refresh_seconds),
    family as (
      insert into token_family (id, client_id, user_address, business, claims, session_id, scope, audience, acr, authenticated_at,
        dpop_jkt, created_at, expires_at, refresh_sha256, refresh_expires_at)
      select ${code.familyId}::uuid, client_id, claimed_by, business, claims, session_id, scope, audience, acr, approved_at,
        ${code.dpopJkt}::text, ${code.now}::bigint,
        ${code.now}::bigint + case when "hasRefresh" then refresh_seconds else ${code.accessSeconds}::bigint end,
        case when "hasRefresh" then ${code.refreshSha256}::bytea end,
        case when "hasRefresh" then ${code.now}::bigint + least(${code.refreshIdleSeconds}::bigint, refresh_seconds) end
      from redeemed
      returning ${familyColumns})
    select redeemed.id, nonce, "hasRefresh", family.*, (select kinds from spent) as spent,
      seat_of(family.business, "userAddress") as seat
    from (values (1)) as always left join (redeemed cross join family) on true`);
  if (answer === undefined) return { row: null, spent: [] };
  const { id, spent, seat, ...row } = answer;
  return { row: id === null ? null : { ...row, seat: seatOf(seat) }, spent };
}

/** A code that could not be redeemed. */
export interface CodeRow {
  readonly clientId: string;
  readonly redirectUri: string;
  readonly codeChallenge: string | null;
  readonly audience: readonly string[];
  readonly dpopJkt: string | null;
  readonly expiresAt: number;
  /** Null while it was not redeemed. */
  readonly familyId: string | null;
}

export async function findCode(db: Queryable, code: AuthorizationCode): Promise<CodeRow | null> {
  const [row] = await db.query<CodeRow>(sql`
    select client_id as "clientId", request ->> 'redirectUri' as "redirectUri",
      request ->> 'codeChallenge' as "codeChallenge",
      array(select jsonb_array_elements_text(request -> 'audience')) as audience, request ->> 'dpopJkt' as "dpopJkt",
      code_expires_at as "expiresAt", family_id as "familyId"
    from login where id = ${code.loginId} and code_sha256 = ${code.sha256}`);
  return row ?? null;
}

export interface Rotation {
  readonly familyId: string;
  readonly clientId: string;
  readonly oldSha256: Buffer;
  readonly newSha256: Buffer;
  readonly generation: number;
  /** The successor, sealed for whoever holds the old token; null without a grace. */
  readonly successorSealed: Buffer | null;
  /** Scopes asked for; null means all. */
  readonly scopes: readonly string[] | null;
  readonly audience: readonly string[];
  /** As of {@link Redemption}. */
  readonly clientAudiences: readonly string[];
  readonly dpopJkt: string | null;
  /** Whether the family may move to another DPoP key: its client proves itself otherwise (RFC 9449 section 5). */
  readonly mayChangeKey: boolean;
  readonly oneTime: readonly OneTimeValue[];
  readonly now: number;
  /** Unix milliseconds by the database's clock: another process may count the grace from there. */
  readonly rotatedAtMs: number;
  readonly refreshIdleSeconds: number;
}

/**
 * Replaces a refresh token by its successor, if it is the newest and everything presented with it fits. No column
 * written here is indexed, so the update touches no index.
 */
export async function rotateRefreshToken(
  db: Queryable,
  rotation: Rotation,
): Promise<Spending<FamilyRow>> {
  const once = columnsOf(rotation.oneTime);
  const { now } = rotation;
  const [answer] = await db.query<Answered<FamilyRow> & Spent>(sql`
    with spent as (select spend_once(${once.kinds}, ${once.hashes}, ${once.expiries}) as kinds),
    rotated as (
      update token_family set generation = ${rotation.generation}, refresh_sha256 = ${rotation.newSha256},
        refresh_expires_at = least(${now}::bigint + ${rotation.refreshIdleSeconds}::bigint, expires_at),
        previous_sha256 = refresh_sha256, successor_sealed = ${rotation.successorSealed},
        rotated_at_ms = ${rotation.rotatedAtMs}, dpop_jkt = coalesce(${rotation.dpopJkt}::text, dpop_jkt)
      where id = ${rotation.familyId} and client_id = ${rotation.clientId} and refresh_sha256 = ${rotation.oldSha256}
        and revoked_at is null and refresh_expires_at > ${now} and expires_at > ${now}
        and (${rotation.scopes}::text[] is null or string_to_array(scope, ' ') @> ${rotation.scopes}::text[])
        and audience @> ${rotation.audience}::text[] and audience <@ ${rotation.clientAudiences}::text[]
        and (dpop_jkt is null or dpop_jkt = ${rotation.dpopJkt}::text
          or (${rotation.dpopJkt}::text is not null and ${rotation.mayChangeKey}::boolean))
        and (select cardinality(kinds) from spent) = ${once.count}
        and (business is null or seat_of(business, user_address) is not null)
      returning id, ${familyColumns})
    select rotated.*, (select kinds from spent) as spent, seat_of(business, "userAddress") as seat
    from (values (1)) as always left join rotated on true`);
  if (answer === undefined) return { row: null, spent: [] };
  const { id, spent, seat, ...row } = answer;
  return { row: id === null ? null : { ...row, seat: seatOf(seat) }, spent };
}

/** A family with the state of its refresh token. */
export interface RefreshRow extends FamilyRow {
  readonly clientId: string;
  readonly refreshSha256: Buffer | null;
  readonly refreshExpiresAt: number | null;
  readonly previousSha256: Buffer | null;
  readonly successorSealed: Buffer | null;
  readonly rotatedAtMs: number | null;
  readonly createdAt: number;
  readonly revokedAt: number | null;
}

/** The family, live or not; null if it was purged, or never existed. */
export async function findRefresh(db: Queryable, familyId: string): Promise<RefreshRow | null> {
  const [answer] = await db.query<Answered<RefreshRow>>(sql`
    select ${familyColumns}, client_id as "clientId", refresh_sha256 as "refreshSha256",
      refresh_expires_at as "refreshExpiresAt", previous_sha256 as "previousSha256",
      successor_sealed as "successorSealed", rotated_at_ms as "rotatedAtMs", created_at as "createdAt",
      revoked_at as "revokedAt", seat_of(business, user_address) as seat
    from token_family where id = ${familyId}`);
  return answer === undefined ? null : { ...answer, seat: seatOf(answer.seat) };
}

export interface MachineFamily {
  readonly id: string;
  readonly clientId: string;
  readonly audience: readonly string[];
  readonly dpopJkt: string | null;
  readonly now: number;
  readonly expiresAt: number;
  readonly oneTime: readonly OneTimeValue[];
}

/** A family without a user, for client_credentials. @returns the one-time values that were fresh; it exists only when all were */
export async function insertMachineFamily(
  db: Queryable,
  family: MachineFamily,
): Promise<readonly string[]> {
  const once = columnsOf(family.oneTime);
  const [row] = await db.query<{ spent: string[] }>(sql`
    with spent as (select spend_once(${once.kinds}, ${once.hashes}, ${once.expiries}) as kinds),
    family as (
      insert into token_family (id, client_id, scope, audience, dpop_jkt, created_at, expires_at)
      select ${family.id}::uuid, ${family.clientId}::text, '', ${family.audience}::text[], ${family.dpopJkt}::text,
        ${family.now}::bigint, ${family.expiresAt}::bigint
      where (select cardinality(kinds) from spent) = ${once.count})
    select kinds as spent from spent`);
  return row?.spent ?? [];
}

/** Ends a family of which two parties hold tokens: its refresh token and all of its access tokens. */
export async function revokeFamily(
  db: Queryable,
  familyId: string,
  { reason, now }: { reason: "code_reuse" | "reuse"; now: number },
): Promise<void> {
  await db.query(sql`
    update token_family set revoked_at = ${now}, revoked_reason = ${reason}, successor_sealed = null
    where id = ${familyId} and revoked_at is null`);
}

/** Ends a family at the request of its client, who may have authenticated with a one-time value. */
export async function revokeFamilyOf(
  db: Queryable,
  familyId: string,
  options: { clientId: string; now: number; oneTime: readonly OneTimeValue[] },
): Promise<readonly string[]> {
  const once = columnsOf(options.oneTime);
  const [row] = await db.query<{ spent: string[] }>(sql`
    with spent as (select spend_once(${once.kinds}, ${once.hashes}, ${once.expiries}) as kinds),
    revoked as (
      update token_family set revoked_at = ${options.now}, revoked_reason = 'revoked', successor_sealed = null
      where id = ${familyId} and client_id = ${options.clientId} and revoked_at is null
        and (select cardinality(kinds) from spent) = ${once.count})
    select kinds as spent from spent`);
  return row?.spent ?? [];
}

interface LiveColumns {
  /** Null where no such family was found. */
  claims: Record<string, unknown> | null;
  seat: SeatAnswer | null;
}

function claimSourceOf({ claims, seat }: LiveColumns): ClaimSource | null {
  return claims === null ? null : { claims, seat: seatOf(seat) };
}

/**
 * The claims of each family that is live: neither revoked nor expired, and its user may still act for its business.
 * Null for any other.
 */
export async function listLiveClaims(
  db: Queryable,
  familyIds: readonly string[],
  now: number,
): Promise<(ClaimSource | null)[]> {
  const rows = await db.query<LiveColumns & { id: string }>(sql`
    select id, claims, seat_of(business, user_address) as seat
    from token_family
    where id = any(${familyIds}::uuid[]) and revoked_at is null and expires_at > ${now}
      and (business is null or seat_of(business, user_address) is not null)`);
  const byId = new Map(rows.map((row) => [row.id, claimSourceOf(row)]));
  return familyIds.map((id) => byId.get(id) ?? null);
}

/** As {@link listLiveClaims} for one family, spending one-time values in the same statement. */
export async function findLiveClaimsOnce(
  db: Queryable,
  familyId: string,
  { now, oneTime }: { now: number; oneTime: readonly OneTimeValue[] },
): Promise<Spending<ClaimSource>> {
  const once = columnsOf(oneTime);
  const [row] = await db.query<LiveColumns & { spent: string[] }>(sql`
    with spent as (select spend_once(${once.kinds}, ${once.hashes}, ${once.expiries}) as kinds)
    select (select kinds from spent) as spent, claims, seat_of(business, user_address) as seat
    from (values (1)) as always
      left join token_family on id = ${familyId} and revoked_at is null and expires_at > ${now}
        and (business is null or seat_of(business, user_address) is not null)`);
  return { row: row === undefined ? null : claimSourceOf(row), spent: row?.spent ?? [] };
}

import type { Address } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";
import type { AttemptFailure } from "../attempt/attempt.ts";
import type { OpenWindow } from "../open-window.ts";
import type { BusinessClaims } from "./business-claims.ts";

/**
 * Finds the member's seat in an active business of that environment, and locks business and roster until the
 * transaction ends. `for key share` still lets votes be noted in the roster: with a stronger lock, two approvals of one
 * member would wait for each other.
 */
export async function holdSeat(
  tx: Queryable,
  of: { business: Address; member: Address; environment: Environment },
): Promise<{ isVoting: boolean } | null> {
  const held = await tx.query(sql`
    select from business_seat
    where business = ${of.business} and member = ${of.member} and environment = ${of.environment} for key share`);
  if (held.length === 0) return null;
  // A statement of its own: one that waits for the lock still sees the member as before the change that it waited for.
  const [row] = await tx.query<{ isVoting: boolean }>(sql`
    select is_voting as "isVoting" from business_seat where business = ${of.business} and member = ${of.member}`);
  return row ?? null;
}

export interface Gathering {
  readonly user: Address;
  readonly claimSha256: string;
  readonly business: Address;
  readonly now: number;
}

/** The acting member's approval of a claimed attempt; the sign-up of an unseen identity and its audit entry happen here, once. */
export async function gatherAttempt(
  tx: Queryable,
  id: string,
  { user, claimSha256, business, now }: Gathering,
): Promise<boolean> {
  const rows = await tx.query(sql`
    with gathered as (
      update login set status = 'gathering', business = ${business}
      where id = ${id} and status = 'claimed' and claim_sha256 = ${claimSha256} and claimed_by = ${user}
        and expires_at > ${now}
      returning claimed_by)
    select sign_up(claimed_by, ${now}) from gathered`);
  return rows.length === 1;
}

export interface OpenLogin {
  readonly loginId: string;
  readonly member: Address;
  readonly business: Address;
  /** The requester that every member's approval names. */
  readonly requester: string;
  readonly expiresAt: number;
  readonly now: number;
}

/** Registers the member's open login. False if another one is still open: a member has one at a time. */
export async function insertOpenLogin(tx: Queryable, login: OpenLogin): Promise<boolean> {
  const { loginId, member, business, requester, expiresAt, now } = login;
  const rows = await tx.query(sql`
    insert into business_login as held (login_id, member, business, requester, expires_at)
    values (${loginId}, ${member}, ${business}, ${requester}, ${expiresAt})
    on conflict (member) do update set login_id = excluded.login_id, business = excluded.business,
      requester = excluded.requester, expires_at = excluded.expires_at where held.expires_at < ${now}
    returning login_id`);
  return rows.length === 1;
}

export async function deleteOpenLogin(tx: Queryable, loginId: string): Promise<void> {
  await tx.query(sql`delete from business_login where login_id = ${loginId}`);
}

/** Notes that other members are asked, and tells the page, which waits for them from now on. */
export async function beginGathering(tx: Queryable, id: string, now: number): Promise<void> {
  await tx.query(sql`
    with begun as (update login set gathering_since = ${now} where id = ${id} and status = 'gathering' returning id)
    select pg_notify('login', id) from begun`);
}

/**
 * Approves a login that its members have approved. Its time is that of the acting member's approval, and the client's
 * organization knows the acting member from now on.
 *
 * @param done.expiresAtLeast the browser can fetch its code until then, Unix seconds
 * @returns whose client it is, or null for a login that is over
 */
export async function completeGathering(
  tx: Queryable,
  id: string,
  done: { claims: BusinessClaims; now: number; expiresAtLeast: number },
): Promise<{ organizationId: string | null } | null> {
  const [row] = await tx.query<{ organizationId: string | null }>(sql`
    with approved as (
      update login set status = 'approved', approved_at = coalesce(gathering_since, ${done.now}), claims = ${JSON.stringify(done.claims)},
        expires_at = greatest(expires_at, ${done.expiresAtLeast})
      where id = ${id} and status = 'gathering' and expires_at >= ${done.now}
      returning id, client_id, claimed_by, channel, gathering_since),
    closed as (delete from business_login where login_id = ${id})
    select organization_id as "organizationId", acquaint(organization_id, claimed_by, ${done.now}),
      pg_notify('login', approved.id || case when channel = 'qr' or gathering_since is not null then ' approved' else '' end)
    from approved
      left join (oauth_client join client_domain on client_domain.id = client_domain_id) on oauth_client.id = client_id`);
  return row ?? null;
}

/** Ends a login that waits for members; any other stays as it is. */
export async function failGathering(
  tx: Queryable,
  id: string,
  failure: AttemptFailure,
): Promise<boolean> {
  const rows = await tx.query(sql`
    with failed as (
      update login set status = 'failed', failure = ${failure} where id = ${id} and status = 'gathering' returning id),
    closed as (delete from business_login where login_id = ${id})
    select pg_notify('login', id) from failed`);
  return rows.length === 1;
}

/** A login as the members see it whose approval it waits for. */
export interface ShownLogin {
  readonly id: string;
  readonly clientId: string;
  readonly scope: string;
  readonly member: Address;
  readonly requester: string;
}

export async function listOpenLogins(db: Queryable, ids: readonly string[]): Promise<ShownLogin[]> {
  // Both tables are given the ids: the columns have different collations, so neither can be looked up by the other
  // through its index.
  return db.query<ShownLogin>(sql`
    select login.id, client_id as "clientId", request ->> 'scope' as scope, member, requester
    from business_login join login on login.id = login_id
    where login_id = any(${[...ids]}) and login.id = any(${[...ids]})`);
}

/**
 * The member's open login. An approval that is under way holds its claimed login and is waited for, so that what it asks
 * is found.
 */
export async function findOpenLogin(
  tx: Queryable,
  member: Address,
  opened: OpenWindow,
): Promise<string | null> {
  await tx.query(
    sql`select from login where claimed_by = ${member} and status = 'claimed'
      and created_at between ${opened.since} and ${opened.until} for update`,
  );
  const [row] = await tx.query<{ id: string }>(
    sql`select login_id as id from business_login where member = ${member}`,
  );
  return row?.id ?? null;
}

export async function findActingMember(tx: Queryable, loginId: string): Promise<Address | null> {
  const [row] = await tx.query<{ member: Address }>(
    sql`select member from business_login where login_id = ${loginId}`,
  );
  return row?.member ?? null;
}

/**
 * Revokes the tokens of a business, and ends its approved logins that have not become tokens yet. The caller holds the
 * business, for which whoever redeems a code at this moment waits. One update covers approved and finished logins: if a
 * browser finishes one meanwhile, PostgreSQL judges the row as it then is.
 *
 * @param of.since no login created earlier can still become tokens; narrows the scan of `login` by its index
 */
export async function endLogins(
  tx: Queryable,
  of: { business: Address; now: number; since: number },
): Promise<void> {
  await tx.query(sql`
    with revoked as (
      update token_family set revoked_at = ${of.now}, revoked_reason = 'business_changed', successor_sealed = null
      where business = ${of.business} and revoked_at is null),
    ended as (
      update login set code_expires_at = case when status = 'finished' then ${of.now}::bigint end,
        status = case when status = 'approved' then 'failed' else status end,
        failure = case when status = 'approved' then 'declined' else failure end
      where business = ${of.business} and status in ('approved', 'finished') and family_id is null
        and created_at >= ${of.since}
      returning id, status)
    select pg_notify('login', id) from ended where status = 'failed'`);
}

/**
 * Sets the domain in what tokens are made from: token families, and approved logins that will become such, in one
 * update for the reason given at {@link endLogins}.
 *
 * @param of.since as there
 */
export async function setDomain(
  tx: Queryable,
  of: { business: Address; domain: string | null; since: number },
): Promise<void> {
  const claims = JSON.stringify({ domain: of.domain });
  await tx.query(sql`
    with renewed as (
      update token_family set claims = claims || ${claims}::jsonb
      where business = ${of.business} and revoked_at is null and claims ->> 'domain' is distinct from ${of.domain}::text)
    update login set claims = claims || ${claims}::jsonb
    where business = ${of.business} and status in ('approved', 'finished') and family_id is null
      and created_at >= ${of.since} and claims ->> 'domain' is distinct from ${of.domain}::text`);
}

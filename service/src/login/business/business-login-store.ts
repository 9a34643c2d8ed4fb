import type { Address } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { type Queryable, sql } from "../../platform/database/db.ts";
import type { AttemptFailure } from "../attempt/attempt.ts";
import type { BusinessClaims } from "./business-claims.ts";

/**
 * The member's place in an active business of that environment; business and roster stay as they are until the
 * transaction ends. That the member acts may be noted meanwhile: of two approvals of one member each would wait for the
 * other.
 */
export async function holdSeat(
  tx: Queryable,
  of: { business: Address; member: Address; environment: Environment },
): Promise<{ isVoting: boolean } | null> {
  const held = await tx.query(sql`
    select from business_seat
    where business = ${of.business} and member = ${of.member} and environment = ${of.environment} for key share`);
  if (held.length === 0) return null;
  // Read only now: a statement that waited for this lock sees the member as it was before the change it waited for.
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
  /** Who asks, as every member approves it. */
  readonly requester: string;
  readonly expiresAt: number;
  readonly now: number;
}

/** Takes the member's one place for an open login. False where another one of it is still open. */
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

/** From now on the page waits for other members. */
export async function beginGathering(tx: Queryable, id: string, now: number): Promise<void> {
  await tx.query(sql`
    with begun as (update login set gathering_since = ${now} where id = ${id} and status = 'gathering' returning id)
    select pg_notify('login', id) from begun`);
}

/**
 * The members have approved; the client's organization knows the acting member from now on, whose login is as old as
 * its own approval.
 *
 * @param done.expiresAtLeast the browser has until then to fetch its code
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

/** What members see of logins that wait for them. */
export interface ShownLogin {
  readonly id: string;
  readonly clientId: string;
  readonly scope: string;
  readonly member: Address;
  readonly requester: string;
}

export async function listOpenLogins(db: Queryable, ids: readonly string[]): Promise<ShownLogin[]> {
  // The ids are named for both: they sort differently here and there, so that the one leads to no index of the other.
  return db.query<ShownLogin>(sql`
    select login.id, client_id as "clientId", request ->> 'scope' as scope, member, requester
    from business_login join login on login.id = login_id
    where login_id = any(${[...ids]}) and login.id = any(${[...ids]})`);
}

/**
 * The member's open login. An approval that is under way holds its claimed login and is waited for, so that what it asks
 * is found.
 *
 * @param opened when a login began that is still open: its index knows no more of it
 */
export async function findOpenLogin(
  tx: Queryable,
  member: Address,
  opened: { since: number; until: number },
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
 * Ends tokens that stand on a business, and what members approved that has not become tokens yet: whoever redeems a code
 * at the same moment waits for the business, which the caller holds. One update has both, since a browser may finish a
 * login meanwhile: the row is judged as it is then.
 *
 * @param of.since when a login began that may still become tokens: its index knows no more of it
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
 * Sets the domain in what tokens are made from: their families, and logins that members approved. As in
 * {@link endLogins}, one update has both.
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

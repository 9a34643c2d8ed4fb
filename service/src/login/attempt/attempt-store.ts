import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";
import type { Attempt, AttemptFailure, Channel } from "./attempt.ts";
import type { Acr } from "../../accounts/index.ts";

/** The members of an attempt that are known when it begins. */
export type NewAttempt = Pick<
  Attempt,
  | "id"
  | "clientId"
  | "request"
  | "browserSha256"
  | "browserNetwork"
  | "createdAt"
  | "expiresAt"
  | "restarts"
>;

export async function insertAttempt(db: Queryable, attempt: NewAttempt): Promise<void> {
  await db.query(sql`
    insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at, restarts)
    values (${attempt.id}, ${attempt.clientId}, ${JSON.stringify(attempt.request)}, 'waiting', ${attempt.browserSha256},
      ${attempt.browserNetwork}, ${attempt.createdAt}, ${attempt.expiresAt}, ${attempt.restarts})`);
}

/**
 * Ends an attempt and starts the same request over, once. Refused where a code may still be released or has been, after
 * the person declined, and after too many restarts. One that was approved may be started over once it has expired.
 */
export async function restartAttempt(
  db: Queryable,
  previousId: string,
  next: Omit<NewAttempt, "request" | "clientId" | "restarts"> & { restartsMax: number },
): Promise<boolean> {
  const rows = await db.query(sql`
    with ended as (
      update login set status = 'failed', failure = 'restarted'
      where id = ${previousId} and restarts < ${next.restartsMax} and (status in ('waiting', 'claimed')
        or (status = 'gathering' and expires_at < ${next.createdAt})
        or (status = 'approved' and expires_at <= ${next.createdAt})
        or (status = 'failed' and failure in ('wrong_number', 'other_browser', 'expired')))
      returning client_id, request, restarts, is_static)
    insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at, restarts, is_static)
    select ${next.id}, client_id, request, 'waiting', ${next.browserSha256}::bytea, ${next.browserNetwork}, ${next.createdAt}::bigint,
      ${next.expiresAt}::bigint, restarts + 1, is_static
    from ended returning id`);
  return rows.length === 1;
}

export async function findAttempt(db: Queryable, id: string): Promise<Attempt | null> {
  const [attempt] = await db.query<Attempt>(sql`
    select id, client_id as "clientId", request, status, failure, browser_sha256 as "browserSha256",
      browser_network as "browserNetwork", created_at as "createdAt", expires_at as "expiresAt", restarts,
      is_static as "isStatic", is_contested as "isContested", channel, session_text as "sessionText", connection,
      claimed_by as "claimedBy", claim_sha256 as "claimSha256", digits, request_object as "requestObject", acr, business,
      gathering_since as "gatheringSince"
    from login where id = ${id}`);
  return attempt ?? null;
}

/** The attempts among these that have left the states in which a page may wait for long. */
export async function listChanged(db: Queryable, ids: readonly string[]): Promise<string[]> {
  const rows = await db.query<{ id: string }>(
    sql`select id from login where id = any(${ids}) and status not in ('waiting', 'gathering')`,
  );
  return rows.map((row) => row.id);
}

/** Switches to a single code, for good; only before anybody has claimed. */
export async function makeStatic(db: Queryable, id: string, now: number): Promise<void> {
  await db.query(sql`
    update login set is_static = true where id = ${id} and status = 'waiting' and channel is null and expires_at > ${now}`);
}

export interface Claim {
  readonly channel: Channel;
  readonly sessionText: string;
  readonly connection: string;
  readonly claimedBy: Address;
  readonly claimSha256: string;
  readonly digits: string;
  readonly requestObject: string;
  readonly acr: Acr;
  /**
   * Whether the scanned code was the static one; the page may have switched meanwhile. Means nothing on the same
   * device.
   */
  readonly isStatic: boolean;
}

/** The first claim wins; it fixes the identity. The page is told by {@link announceLogin}. */
export async function claimAttempt(
  db: Queryable,
  id: string,
  { claim, now }: { claim: Claim; now: number },
): Promise<boolean> {
  const rows = await db.query(sql`
    update login set status = 'claimed', channel = ${claim.channel}, session_text = ${claim.sessionText},
      connection = ${claim.connection}, claimed_by = ${claim.claimedBy}, claim_sha256 = ${claim.claimSha256},
      digits = ${claim.digits}, request_object = ${claim.requestObject}, acr = ${claim.acr}
    where id = ${id} and status = 'waiting' and expires_at > ${now}
      and (is_static = ${claim.isStatic} or ${claim.channel} = 'app-link')
    returning 1 as claimed`);
  return rows.length === 1;
}

/** Notes that a second wallet tried to claim, and tells the page. */
export async function contestAttempt(db: Queryable, id: string): Promise<void> {
  await db.query(sql`
    with contested as (update login set is_contested = true where id = ${id} and status = 'claimed' and not is_contested returning id)
    select pg_notify('login', id) from contested`);
}

export interface Approval {
  readonly user: string;
  /** The client's, which knows the user from now on. */
  readonly organizationId: string;
  readonly claimSha256: string;
  readonly now: number;
  /** The browser has until then to fetch its code. */
  readonly expiresAtLeast: number;
}

/**
 * The approval of a claimed attempt. The sign-up of an unseen identity and its audit entry happen here, once, and the
 * organization knows the user from now on. The page is told by {@link announceLogin}, here and below.
 */
export async function approveAttempt(
  db: Queryable,
  id: string,
  approval: Approval,
): Promise<boolean> {
  const rows = await db.query(sql`
    with approved as (
      update login set status = 'approved', approved_at = ${approval.now},
        expires_at = greatest(expires_at, ${approval.expiresAtLeast})
      where id = ${id} and status = 'claimed' and claim_sha256 = ${approval.claimSha256} and claimed_by = ${approval.user}
        and expires_at > ${approval.now}
      returning claimed_by)
    select sign_up(claimed_by, ${approval.now}), acquaint(${approval.organizationId}, claimed_by, ${approval.now})
    from approved`);
  return rows.length === 1;
}

export type UnclaimedApproval = Omit<Approval, "claimSha256"> &
  Pick<Claim, "channel" | "sessionText" | "connection" | "acr">;

/** Claims and approves in one call: for a wallet that only knows the service document, or on the same device. */
export async function approveUnclaimed(
  db: Queryable,
  id: string,
  approval: UnclaimedApproval,
): Promise<boolean> {
  const rows = await db.query(sql`
    with approved as (
      update login set status = 'approved', channel = ${approval.channel}, session_text = ${approval.sessionText},
        connection = ${approval.connection}, claimed_by = ${approval.user}, acr = ${approval.acr}, approved_at = ${approval.now},
        expires_at = greatest(expires_at, ${approval.expiresAtLeast})
      where id = ${id} and status = 'waiting' and expires_at > ${approval.now}
        and (not is_static or ${approval.channel} = 'app-link')
      returning claimed_by)
    select sign_up(claimed_by, ${approval.now}), acquaint(${approval.organizationId}, claimed_by, ${approval.now})
    from approved`);
  return rows.length === 1;
}

/** Ends an attempt that is still open. */
export async function failAttempt(
  db: Queryable,
  id: string,
  failure: AttemptFailure,
): Promise<boolean> {
  return failAmong(db, ["waiting", "claimed", "gathering", "approved"], { id, failure });
}

/** As {@link failAttempt}, unless it is approved. */
export async function failUndecided(
  db: Queryable,
  id: string,
  failure: AttemptFailure,
): Promise<boolean> {
  return failAmong(db, ["waiting", "claimed", "gathering"], { id, failure });
}

/** As {@link failAttempt}, unless it is approved or, for a business, other members were asked. */
export async function failUnasked(
  db: Queryable,
  id: string,
  failure: AttemptFailure,
): Promise<boolean> {
  return failAmong(db, ["waiting", "claimed"], { id, failure });
}

async function failAmong(
  db: Queryable,
  statuses: readonly string[],
  { id, failure }: { id: string; failure: AttemptFailure },
): Promise<boolean> {
  const rows = await db.query(sql`
    with failed as (
      update login set status = 'failed', failure = ${failure}
      where id = ${id} and status = any(${statuses}::text[]) returning id)
    select pg_notify('login', id) from failed`);
  return rows.length === 1;
}

export interface Finish {
  readonly now: number;
  readonly browserSha256: Buffer;
  readonly channel: Channel;
  readonly codeSha256: Buffer;
  readonly codeExpiresAt: number;
  readonly sessionId: string;
  readonly sessionSecretSha256: Buffer;
  /**
   * Hash of the secret in the browser's session cookie, if any: the same user continues that session, under a new one.
   */
  readonly presentedSecretSha256: Buffer | null;
  readonly sessionIdleSeconds: number;
  readonly sessionAbsoluteSeconds: number;
}

/**
 * Turns an approved attempt into a code, once, together with the browser's session and what it now remembers as
 * approved.
 *
 * @returns the request; null, with nothing done, for another browser or channel, or if the client lost the redirect URI
 */
export async function finishAttempt(
  db: Queryable,
  id: string,
  finish: Finish,
): Promise<Attempt["request"] | null> {
  const [row] = await db.query<{ request: Attempt["request"] }>(sql`
    with found as (
      select id, client_id, request, claimed_by, approved_at, acr, jsonb_build_array(jsonb_build_object('client', client_id,
        'scope', request ->> 'scope', 'audience', request ->> 'audience', 'acr', acr)) as approval
      from login
      where id = ${id} and status = 'approved' and browser_sha256 = ${finish.browserSha256} and expires_at > ${finish.now}
        and (channel = ${finish.channel} or (gathering_since is not null and ${finish.channel} = 'qr'))
        and (business is null or seat_of(business, claimed_by) is not null)
        and exists (select from oauth_client as client where client.id = login.client_id and disabled_at is null
          and request ->> 'redirectUri' = any(redirect_uris))
      for update),
    kept as (
      select keep_session(${finish.presentedSecretSha256}, ${finish.sessionSecretSha256}, claimed_by, approved_at, acr, approval,
        ${finish.now}, ${finish.now - finish.sessionIdleSeconds}, ${finish.now - finish.sessionAbsoluteSeconds}) as id
      from found),
    made as (
      insert into session (id, secret_sha256, user_address, authenticated_at, acr, created_at, used_at, approvals)
      select ${finish.sessionId}::uuid, ${finish.sessionSecretSha256}::bytea, claimed_by, approved_at, acr, ${finish.now}::bigint, ${finish.now}::bigint, approval
      from found cross join kept where kept.id is null returning id),
    finished as (
      update login set status = 'finished', finished_at = ${finish.now}, session_id = coalesce(made.id, kept.id),
        code_sha256 = ${finish.codeSha256}, code_expires_at = ${finish.codeExpiresAt}
      from found cross join kept left join made on true
      where login.id = ${id})
    select request from found`);
  return row?.request ?? null;
}

export interface AnsweredAttempt {
  readonly id: string;
  readonly clientId: string;
  readonly request: Attempt["request"];
  readonly user: string;
  readonly acr: Acr;
  readonly authenticatedAt: number;
  readonly sessionId: string;
  readonly browserSha256: Buffer;
  readonly browserNetwork: string;
  readonly now: number;
  readonly codeSha256: Buffer;
  readonly codeExpiresAt: number;
}

/**
 * Inserts a finished attempt that the browser's session answers, without the wallet; the session counts as used. False
 * if it has ended.
 */
export async function insertAnsweredAttempt(
  db: Queryable,
  answered: AnsweredAttempt,
): Promise<boolean> {
  const rows = await db.query(sql`
    with used as (
      update session set used_at = ${answered.now} where id = ${answered.sessionId} and ended_at is null returning id)
    insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at, claimed_by,
      acr, approved_at, session_id, code_sha256, code_expires_at, finished_at)
    select ${answered.id}, ${answered.clientId}, ${JSON.stringify(answered.request)}::jsonb, 'finished', ${answered.browserSha256}::bytea, ${answered.browserNetwork},
      ${answered.now}::bigint, ${answered.codeExpiresAt}::bigint, ${answered.user}, ${answered.acr}, ${answered.authenticatedAt}::bigint, used.id, ${answered.codeSha256}::bytea, ${answered.codeExpiresAt}::bigint, ${answered.now}::bigint
    from used
    returning id`);
  return rows.length === 1;
}

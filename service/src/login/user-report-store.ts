import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";

/** A session of a browser that is kept. Times are Unix seconds. */
export interface KeptSession {
  readonly id: string;
  readonly authenticatedAt: number;
  readonly usedAt: number;
  readonly endedAt: number | null;
  readonly acr: string;
  /** Clients that the user has approved in it. */
  readonly clients: readonly string[];
}

/** The tokens of one login at one client, or what is kept of them. */
export interface KeptTokens {
  readonly id: string;
  readonly clientId: string;
  readonly scope: string;
  readonly audience: readonly string[];
  readonly createdAt: number;
  /** No token of them outlives this. */
  readonly expiresAt: number;
  readonly revokedAt: number | null;
  readonly revokedReason: string | null;
}

/** A login, also one that failed or that nobody finished. */
export interface KeptLogin {
  readonly id: string;
  readonly clientId: string;
  readonly status: string;
  readonly failure: string | null;
  /**
   * Whether the user's wallet claimed it, or only the user may; false if it merely hints at the user, since anybody may
   * have answered it.
   */
  readonly isOwn: boolean;
  readonly createdAt: number;
}

/** A back-channel logout that a client was told of, or is still to be. */
export interface KeptLogout {
  readonly clientId: string;
  readonly createdAt: number;
  /** Null while the client is still to be told. */
  readonly endedAt: number | null;
  readonly outcome: string | null;
}

/** When the user logged in first, Unix seconds; null for an identity that never did. */
export async function findSignUpTime(db: Queryable, user: Address): Promise<number | null> {
  const [row] = await db.query<{ createdAt: number }>(
    sql`select created_at as "createdAt" from svc_user where address = ${user}`,
  );
  return row?.createdAt ?? null;
}

/** Newest first. */
export async function listSessionsOf(
  db: Queryable,
  user: Address,
  limit: number,
): Promise<KeptSession[]> {
  return db.query<KeptSession>(sql`
    select id, authenticated_at as "authenticatedAt", used_at as "usedAt", ended_at as "endedAt", acr,
      array(select distinct approval ->> 'client' from jsonb_array_elements(approvals) as approval order by 1) as clients
    from session where user_address = ${user} order by created_at desc, id desc limit ${limit}`);
}

/** Newest first. */
export async function listTokensOf(
  db: Queryable,
  user: Address,
  limit: number,
): Promise<KeptTokens[]> {
  return db.query<KeptTokens>(sql`
    select id, client_id as "clientId", scope, audience, created_at as "createdAt", expires_at as "expiresAt",
      revoked_at as "revokedAt", revoked_reason as "revokedReason"
    from token_family where user_address = ${user} order by created_at desc, id desc limit ${limit}`);
}

/** Newest first. */
export async function listLogoutsOf(
  db: Queryable,
  user: Address,
  limit: number,
): Promise<KeptLogout[]> {
  return db.query<KeptLogout>(sql`
    select client_id as "clientId", created_at as "createdAt", ended_at as "endedAt", outcome
    from logout_delivery where user_address = ${user} order by created_at desc, id desc limit ${limit}`);
}

/**
 * Logins created in this range of Unix seconds that name the user, if only by a hint; newest first. Scans the whole
 * range: an index on users would cost every login a write.
 */
export async function listLoginsOf(
  db: Queryable,
  user: Address,
  { from, before }: { from: number; before: number },
): Promise<KeptLogin[]> {
  return db.query<KeptLogin>(sql`
    select id, client_id as "clientId", status, failure,
      (claimed_by = ${user} or request ->> 'expectedUser' = ${user}) is true as "isOwn", created_at as "createdAt"
    from login
    where created_at >= ${from} and created_at < ${before}
      and (claimed_by = ${user} or request ->> 'expectedUser' = ${user} or request ->> 'hintedUser' = ${user})
    order by created_at desc, id desc`);
}

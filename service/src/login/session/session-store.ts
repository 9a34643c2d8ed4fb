import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";
import type { Acr } from "../../accounts/index.ts";
import type { SessionApproval } from "../authorization/approved-acr.ts";

/** A browser's session, and what the user approved in it for one client. */
export interface FoundSession {
  readonly id: string;
  readonly user: string;
  readonly acr: Acr;
  readonly authenticatedAt: number;
  readonly approvals: readonly SessionApproval[];
}

export interface SessionLookup {
  readonly secretSha256: Buffer;
  readonly now: number;
  readonly idleSeconds: number;
  readonly absoluteSeconds: number;
  readonly clientId: string;
}

/** The session behind a cookie, unless it has ended, was idle for too long, or is too old. */
export async function findSession(
  db: Queryable,
  lookup: SessionLookup,
): Promise<FoundSession | null> {
  const [row] = await db.query<FoundSession>(sql`
    select id, user_address as "user", acr, authenticated_at as "authenticatedAt",
      (select coalesce(jsonb_agg(each), '[]') from jsonb_array_elements(approvals) as each
        where each ->> 'client' = ${lookup.clientId}) as approvals
    from session
    where secret_sha256 = ${lookup.secretSha256} and ended_at is null
      and used_at > ${lookup.now - lookup.idleSeconds} and created_at > ${lookup.now - lookup.absoluteSeconds}`);
  return row ?? null;
}

export interface LiveSession {
  readonly id: string;
  readonly user: Address;
}

/** The session behind a cookie, unless it has ended. An idle one counts: its tokens may live. */
export async function findSessionBySecret(
  db: Queryable,
  secretSha256: Buffer,
): Promise<LiveSession | null> {
  const [row] = await db.query<LiveSession>(sql`
    select id, user_address as user from session where secret_sha256 = ${secretSha256} and ended_at is null`);
  return row ?? null;
}

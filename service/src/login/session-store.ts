import { type Queryable, sql } from "../platform/db.ts";
import type { Acr } from "./acr.ts";

/** A browser's session, and whether the user approved this very request in it. */
export interface FoundSession {
  readonly id: string;
  readonly user: string;
  readonly acr: Acr;
  readonly authenticatedAt: number;
  readonly isApproved: boolean;
}

export interface SessionLookup {
  readonly secretSha256: Buffer;
  readonly now: number;
  readonly idleSeconds: number;
  readonly absoluteSeconds: number;
  /** What is asked: the approval must be for exactly this. */
  readonly clientId: string;
  readonly scope: string;
  readonly audience: string;
}

export async function findSession(
  db: Queryable,
  lookup: SessionLookup,
): Promise<FoundSession | null> {
  const [row] = await db.query<{
    id: string;
    user_address: string;
    acr: Acr;
    authenticated_at: number;
    is_approved: boolean;
  }>(sql`
    select id, user_address, acr, authenticated_at, approvals @> jsonb_build_array(jsonb_build_object('client', ${lookup.clientId}::text,
      'scope', ${lookup.scope}::text, 'audience', ${lookup.audience}::text, 'acr', acr)) as is_approved
    from session
    where secret_sha256 = ${lookup.secretSha256} and ended_at is null
      and used_at > ${lookup.now - lookup.idleSeconds} and created_at > ${lookup.now - lookup.absoluteSeconds}`);
  if (row === undefined) return null;
  return {
    id: row.id,
    user: row.user_address,
    acr: row.acr,
    authenticatedAt: row.authenticated_at,
    isApproved: row.is_approved,
  };
}

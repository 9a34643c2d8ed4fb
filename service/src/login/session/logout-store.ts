import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";

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

import type { Address } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { type Queryable, sql } from "../platform/database/db.ts";

/** A verification of an e-mail address, pending or not. Times are Unix seconds. */
export interface KeptVerification {
  readonly id: string;
  readonly environment: Environment;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** Newest first. */
export async function listVerificationsOf(
  db: Queryable,
  user: Address,
  limit: number,
): Promise<KeptVerification[]> {
  return db.query<KeptVerification>(sql`
    select id, environment, created_at as "createdAt", expires_at as "expiresAt" from email_verification
    where user_address = ${user} order by id desc limit ${limit}`);
}

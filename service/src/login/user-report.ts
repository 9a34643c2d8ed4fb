import type { Address } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import { daysOfLogins } from "./retention.ts";
import * as store from "./user-report-store.ts";

/** All that is stored about a user's logins; each list newest first. */
export interface LoginReport {
  /** Unix seconds; null for an identity that never logged in. */
  readonly firstLoginAt: number | null;
  readonly sessions: readonly store.KeptSession[];
  readonly tokens: readonly store.KeptTokens[];
  readonly logins: readonly store.KeptLogin[];
  readonly logouts: readonly store.KeptLogout[];
}

/** @param given.limit the most entries of each list; `logins` may exceed it, since it is read a day at a time */
export async function reportLogins(
  db: Queryable,
  user: Address,
  { now, limit }: { now: number; limit: number },
): Promise<LoginReport> {
  const logins: store.KeptLogin[] = [];
  for (const day of daysOfLogins(now).toReversed()) {
    logins.push(...(await store.listLoginsOf(db, user, day)));
    if (logins.length >= limit) break;
  }
  return {
    firstLoginAt: await store.findSignUpTime(db, user),
    sessions: await store.listSessionsOf(db, user, limit),
    tokens: await store.listTokensOf(db, user, limit),
    logins,
    logouts: await store.listLogoutsOf(db, user, limit),
  };
}

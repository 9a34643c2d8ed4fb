import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { firstUuid } from "../platform/ids.ts";
import type { Job } from "../platform/jobs.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import { withdrawOpenLogin } from "./business/business-login.ts";
import * as store from "./retention-store.ts";
import { endSession } from "./session/session-end.ts";

/** Attempts and sessions are kept 30 days (decisions section 8, Retention). */
const retentionSeconds = 30 * 86_400;
const purgeBatch = 5000;
/** Longer than any login stays open, and than clocks differ. */
const openSecondsMax = 3600;

/** Removes what is past its retention. */
export async function purgeLogins(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const now = ctx.clock.now();
  const before = now - retentionSeconds;
  await purgeInBatches(async (limit) => store.purgeAttempts(ctx.db, before, limit));
  let after: string | null = firstUuid;
  while (after !== null)
    after = await store.purgeSessions(ctx.db, { now, before, after, limit: purgeBatch });
}

export function retentionJobs(ctx: Pick<Ctx, "db" | "clock">): readonly Job[] {
  return [{ name: "login-retention", everySeconds: 3600, run: async () => purgeLogins(ctx) }];
}

/** What the deletion of a user takes. */
export interface Deletion {
  readonly now: number;
  /** Ends the question that a login put to members of a business, which this slice does not know. */
  readonly withdraw: (loginId: string) => Promise<void>;
}

/**
 * Deletes a user in the caller's transaction: sessions end as by a logout, so clients are told, and every row goes but
 * the audit trail (decisions section 8, Retention). Members of a business are not asked any more for its login.
 *
 * @returns false for an identity that never logged in
 */
export async function deleteUser(
  tx: Queryable,
  user: Address,
  { now, withdraw }: Deletion,
): Promise<boolean> {
  const opened = { since: now - openSecondsMax, until: now + openSecondsMax };
  // First: approvals on their way are waited for, and from here on none of the user's commits before what is below.
  const isKnown = await store.lockSignUp(tx, user, now);
  await withdrawOpenLogin(tx, user, { opened, withdraw });
  // A login that is finished comes before its session; once it has a code, whoever redeems that has the session first.
  await store.lockOpenLogins(tx, user, opened);
  for (const sessionId of await store.listOpenSessions(tx, user)) {
    await endSession(tx, sessionId, now);
  }
  await store.deleteUser(tx, user);
  return isKnown;
}

import type { Address } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import { withdrawOpenLogin } from "./business/business-login.ts";
import { openWindowAt } from "./open-window.ts";
import { daysOfLogins } from "./retention.ts";
import { endSessionsOf } from "./session/session-end.ts";
import * as store from "./user-deletion-store.ts";
import type { UserEnd } from "./user-logout.ts";

/**
 * Deletes a user in the caller's transaction: sessions end as by a logout, so clients are told, and every row is
 * deleted except the audit trail (decisions section 8, Retention). Members of a business are no longer asked about the
 * user's open login.
 *
 * @returns false for an identity that never logged in
 */
export async function deleteUser(
  tx: Queryable,
  user: Address,
  { now, withdraw }: UserEnd,
): Promise<boolean> {
  const opened = openWindowAt(now);
  // First, since it waits for approvals under way, and no later one of this user can commit before the deletion.
  const isKnown = await store.lockSignUp(tx, user, now);
  await withdrawOpenLogin(tx, user, { opened, withdraw });
  // Lock order: finishing a login locks the login, then its session, so open logins are locked before sessions. Those
  // that have a code are excluded: redeeming it locks the session first.
  await store.lockOpenLogins(tx, user, opened);
  await endSessionsOf(tx, user, now);
  for (const day of daysOfLogins(now)) await store.deleteLogins(tx, user, day);
  await store.deleteUser(tx, user);
  return isKnown;
}

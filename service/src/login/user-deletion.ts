import type { Address } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import { withdrawOpenLogin } from "./business/business-login.ts";
import { daysOfLogins } from "./retention.ts";
import { endSessionsOf } from "./session/session-end.ts";
import * as store from "./user-deletion-store.ts";
import { openedAround, type UserEnd } from "./user-logout.ts";

/**
 * Deletes a user in the caller's transaction: sessions end as by a logout, so clients are told, and every row goes but
 * the audit trail (decisions section 8, Retention). Members of a business are not asked any more for its login.
 *
 * @returns false for an identity that never logged in
 */
export async function deleteUser(
  tx: Queryable,
  user: Address,
  { now, withdraw }: UserEnd,
): Promise<boolean> {
  const opened = openedAround(now);
  // First: this waits for approvals under way, and from here on none of the user's commits before the deletion.
  const isKnown = await store.lockSignUp(tx, user, now);
  await withdrawOpenLogin(tx, user, { opened, withdraw });
  // Finishing a login locks it before its session, so these logins come first. Those that have a code are not among
  // them: redeeming it locks the session first.
  await store.lockOpenLogins(tx, user, opened);
  await endSessionsOf(tx, user, now);
  for (const day of daysOfLogins(now)) await store.deleteLogins(tx, user, day);
  await store.deleteUser(tx, user);
  return isKnown;
}

import type { Address } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import { withdrawOpenLogin } from "./business/business-login.ts";
import { endSessionsOf } from "./session/session-end.ts";
import * as store from "./user-logout-store.ts";

/** Longer than any login stays open, the difference of clocks included. */
const openSecondsMax = 3600;

/** Between which times a login that is still open can have begun. */
export function openedAround(now: number): { since: number; until: number } {
  return { since: now - openSecondsMax, until: now + openSecondsMax };
}

/** What the end of all of a user's logins needs to know and to call. */
export interface UserEnd {
  readonly now: number;
  /** Ends the ballot of members that a login has opened; ballots belong to another slice. */
  readonly withdraw: (loginId: string) => Promise<void>;
}

/** What a user was logged in to. */
export interface EndedLogins {
  readonly sessions: number;
  /** Logins that had tokens and no session any more. */
  readonly offline: number;
  /** Logins that were approved, and whose browser had not fetched its code yet. */
  readonly unfinished: number;
}

/**
 * Logs a user out everywhere, in the caller's transaction; clients are told by back-channel logout, and pages that wait
 * lead back to theirs. Members of a business are not asked any more for a login of the user.
 *
 * @returns null for an identity that never logged in
 */
export async function logOutUser(
  tx: Queryable,
  user: Address,
  { now, withdraw }: UserEnd,
): Promise<EndedLogins | null> {
  const opened = openedAround(now);
  await withdrawOpenLogin(tx, user, { opened, withdraw });
  // Finishing a login locks it before its session.
  const unfinished = await store.failOpenLogins(tx, user, opened);
  const sessions = await endSessionsOf(tx, user, now);
  const offline = await store.revokeOffline(tx, user, now);
  return (await store.isUser(tx, user)) ? { sessions, offline, unfinished } : null;
}

/** The next users, by address, whom {@link logOutUser} would log out of anything. */
export async function listLoggedIn(
  db: Queryable,
  page: { after: string; limit: number; now: number },
): Promise<Address[]> {
  return store.listLoggedIn(db, { ...page, opened: openedAround(page.now) });
}

import type { Address } from "@svc/protocol";
import type { Queryable } from "../platform/database/db.ts";
import { withdrawOpenLogin } from "./business/business-login.ts";
import { endSessionsOf } from "./session/session-end.ts";
import { openWindowAt } from "./open-window.ts";
import * as store from "./user-logout-store.ts";

/** The time of the end of a user's logins, and what it calls. */
export interface UserEnd {
  readonly now: number;
  /** Ends the members' ballot that a login opened; a callback, because ballots belong to another slice. */
  readonly withdraw: (loginId: string) => Promise<void>;
}

/** How many logins were ended. */
export interface EndedLogins {
  readonly sessions: number;
  /** Logins that had tokens and no session any more. */
  readonly offline: number;
  /** Logins that were approved, and whose browser had not fetched its code yet. */
  readonly unfinished: number;
}

/**
 * Logs a user out everywhere, in the caller's transaction. Clients are told by back-channel logout, and login pages
 * that wait lead back to theirs. Members of a business are no longer asked about the user's open login.
 *
 * @returns null for an identity that never logged in
 */
export async function logOutUser(
  tx: Queryable,
  user: Address,
  { now, withdraw }: UserEnd,
): Promise<EndedLogins | null> {
  const opened = openWindowAt(now);
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
  return store.listLoggedIn(db, { ...page, opened: openWindowAt(page.now) });
}

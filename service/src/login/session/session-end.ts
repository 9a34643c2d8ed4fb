import type { Address } from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import * as store from "./session-end-store.ts";

/**
 * Ends a browser session with all that came from it: its token families, and the clients' own sessions by back-channel
 * logout. Part of the caller's transaction.
 *
 * @returns false when it had ended before; nothing is announced twice
 */
export async function endSession(tx: Queryable, sessionId: string, now: number): Promise<boolean> {
  const user = await store.endSession(tx, sessionId, now);
  if (user === null) return false;
  await store.revokeSessionFamilies(tx, sessionId, now);
  await store.insertLogouts(tx, { id: sessionId, user, now });
  return true;
}

/** Ends all browser sessions of a user, as {@link endSession} does. @returns how many */
export async function endSessionsOf(tx: Queryable, user: Address, now: number): Promise<number> {
  let ended = 0;
  for (const sessionId of await store.listOpenSessions(tx, user))
    if (await endSession(tx, sessionId, now)) ended += 1;
  return ended;
}

import { createHash, randomBytes } from "node:crypto";

import type { Login, LogoutToken } from "@svc/merchant";

/** People have to log in again twelve hours after a login. */
const lifetimeSeconds = 12 * 3600;

/** The oldest session makes room for the next. */
const sessionsMax = 10_000;

/** Who is logged in. This shop keeps that in memory; yours would use its database. */
export interface Sessions {
  /** Begins a session and returns its id: 256 random bits, which are only in the cookie. */
  open: (login: Login) => string;
  find: (id: string) => Login | null;
  /** Replaces the tokens of a session; one that ended meanwhile stays ended. */
  renew: (id: string, login: Login) => void;
  close: (id: string) => void;
  /** Ends the sessions of one login (`sid`), or all of one person (`sub`). */
  closeAll: (ended: LogoutToken) => void;
}

export function openSessions(now: () => number): Sessions {
  const sessions = new Map<string, { login: Login; endsAt: number }>();

  const find = (id: string): Login | null => {
    const session = sessions.get(keyOf(id));
    return session !== undefined && now() < session.endsAt ? session.login : null;
  };

  return {
    find,
    open: (login) => {
      const [oldest] = sessions.keys();
      if (sessions.size >= sessionsMax && oldest !== undefined) sessions.delete(oldest);
      const id = randomBytes(32).toString("base64url");
      sessions.set(keyOf(id), { login, endsAt: now() + lifetimeSeconds });
      return id;
    },
    renew: (id, login) => {
      const session = sessions.get(keyOf(id));
      if (session !== undefined) session.login = login;
    },
    close: (id) => {
      sessions.delete(keyOf(id));
    },
    closeAll: ({ sub, sid }) => {
      for (const [key, { login }] of sessions) {
        const isMeant = sid === undefined ? login.subject === sub : login.claims["sid"] === sid;
        if (isMeant) sessions.delete(key);
      }
    },
  };
}

/** Ids are stored as hashes: somebody who reads the memory, or your database, cannot take over a session. */
function keyOf(id: string): string {
  return createHash("sha256").update(id).digest("base64url");
}

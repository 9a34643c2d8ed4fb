import { createHash, randomBytes } from "node:crypto";

import { MerchantError, type Login, type LogoutToken } from "@svc/merchant";

/** People have to log in again twelve hours after a login. */
const lifetimeSeconds = 12 * 3600;

/** The oldest session makes room for the next. */
const sessionsMax = 10_000;

/** How many ended logins are remembered, because the callback of one may still be redeeming its code. */
const endedMax = 1000;

/** Who is logged in. This shop keeps that in memory; yours would use its database. */
export interface Sessions {
  /**
   * Begins a session and returns its id: 256 random bits, which are only in the cookie.
   *
   * @throws {MerchantError} grant_refused if the login has ended already
   */
  open: (login: Login) => string;
  find: (id: string) => Login | null;
  /** Replaces the tokens of a session; one that ended meanwhile stays ended. */
  renew: (id: string, login: Login) => void;
  close: (id: string) => void;
  /** Ends the sessions of one login (`sid`), or all that one person (`sub`) had at `endedAt`. */
  closeAll: (ended: LogoutToken) => void;
}

export function openSessions(now: () => number): Sessions {
  const sessions = new Map<string, { login: Login; endsAt: number }>();
  const ended = new Set<unknown>();

  const find = (id: string): Login | null => {
    const session = sessions.get(keyOf(id));
    return session !== undefined && now() < session.endsAt ? session.login : null;
  };

  return {
    find,
    open: (login) => {
      // The broker may report the login's end while the callback is still redeeming its code.
      if (ended.has(login.claims["sid"])) throw new MerchantError("grant_refused");
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
    closeAll: ({ sub, sid, endedAt }) => {
      if (sid !== undefined) ended.add(sid);
      const [earliest] = ended;
      if (ended.size > endedMax) ended.delete(earliest);
      for (const [key, { login }] of sessions) {
        const { subject, claims } = login;
        // The token may come an hour late: a login that the person approved since then stays.
        const isOlder = !(Number(claims["auth_time"]) > endedAt);
        const isMeant = sid === undefined ? subject === sub && isOlder : claims["sid"] === sid;
        if (isMeant) sessions.delete(key);
      }
    },
  };
}

/** Ids are stored as hashes: somebody who reads the memory, or your database, cannot take over a session. */
function keyOf(id: string): string {
  return createHash("sha256").update(id).digest("base64url");
}

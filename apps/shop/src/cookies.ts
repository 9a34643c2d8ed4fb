import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from "node:crypto";

import type { PendingLogin } from "@svc/merchant";

/** A personal login takes two minutes at most, one for a business fifteen. */
const pendingSeconds = 20 * 60;

/** Logins under way in parallel tabs; each has its own cookie. */
const pendingMax = 4;

/** The cookies of one browser, by name. */
export type CookieJar = ReadonlyMap<string, string>;

/** A login under way, as this shop remembers it. */
interface RememberedLogin extends PendingLogin {
  /** True if it was started with "Log in for my company". */
  isForCompany?: boolean;
}

/** The shop's two kinds of cookie. Functions that return strings return `Set-Cookie` headers. */
export interface Cookies {
  /** Stores a login that is under way so that only this browser can bring it back; the oldest makes room. */
  rememberLogin: (jar: CookieJar, pending: RememberedLogin) => string[];
  /** The login under way with this state; null when this browser has not started it, or too long ago. */
  recallLogin: (jar: CookieJar, state: string | null) => RememberedLogin | null;
  forgetLogin: (pending: PendingLogin) => string;
  session: (id: string) => string;
  /** The id of the browser's session; empty without one. */
  sessionId: (jar: CookieJar) => string;
  endSession: () => string;
}

interface CookieOptions {
  url: string;
  secret: string | undefined;
  now: () => number;
}

export function openCookies({ url, secret, now }: CookieOptions): Cookies {
  const isSecure = url.startsWith("https:");
  // No other host, not even a subdomain, can set a __Host- cookie. Browsers require Secure for it, and so https.
  const prefix = isSecure ? "__Host-shop" : "shop";
  const attributes = `Path=/; HttpOnly; SameSite=Lax${isSecure ? "; Secure" : ""}`;
  const drop = (name: string) => `${name}=; Max-Age=0; ${attributes}`;
  const nameOf = (state: string) => `${prefix}_login_${state.slice(0, 8)}`;
  const { seal, unseal } = openSeal(secret ?? randomBytes(32).toString("base64url"));

  return {
    rememberLogin: (jar, pending) => {
      // Browsers send older cookies first (RFC 6265 section 5.4).
      const earlier = [...jar.keys()].filter((name) => name.startsWith(nameOf("")));
      const sealed = seal({ ...pending, expiresAt: now() + pendingSeconds });
      const cookie = `${nameOf(pending.state)}=${sealed}; Max-Age=${pendingSeconds}; ${attributes}`;
      return [...earlier.slice(0, 1 - pendingMax).map(drop), cookie];
    },
    recallLogin: (jar, state) => {
      const sealed = state === null ? undefined : jar.get(nameOf(state));
      const pending =
        sealed === undefined
          ? null
          : (unseal(sealed) as (RememberedLogin & { expiresAt: number }) | null);
      return pending !== null && now() < pending.expiresAt ? pending : null;
    },
    forgetLogin: (pending) => drop(nameOf(pending.state)),
    session: (id) => `${prefix}_session=${id}; ${attributes}`,
    sessionId: (jar) => jar.get(`${prefix}_session`) ?? "",
    endSession: () => drop(`${prefix}_session`),
  };
}

/** Reads a `Cookie` header. The first of two cookies with one name counts: it has the longer path. */
export function parseCookies(header = ""): CookieJar {
  const jar = new Map<string, string>();
  for (const pair of header.split(";")) {
    const at = pair.indexOf("=");
    const name = pair.slice(0, at).trim();
    if (at > 0 && !jar.has(name)) jar.set(name, pair.slice(at + 1).trim());
  }
  return jar;
}

/** AES-256-GCM: nobody else can read a sealed text, and a changed one does not open. */
function openSeal(secret: string) {
  const key = Buffer.from(hkdfSync("sha256", secret, "", "shop pending login", 32));
  return {
    seal: (value: unknown): string => {
      const iv = randomBytes(12);
      const cipher = createCipheriv("aes-256-gcm", key, iv);
      const sealed = Buffer.concat([cipher.update(JSON.stringify(value)), cipher.final()]);
      return Buffer.concat([iv, cipher.getAuthTag(), sealed]).toString("base64url");
    },
    unseal: (text: string): unknown => {
      const bytes = Buffer.from(text, "base64url");
      try {
        const decipher = createDecipheriv("aes-256-gcm", key, bytes.subarray(0, 12), {
          authTagLength: 16,
        });
        decipher.setAuthTag(bytes.subarray(12, 28));
        const opened = Buffer.concat([decipher.update(bytes.subarray(28)), decipher.final()]);
        return JSON.parse(opened.toString("utf8"));
      } catch {
        return null;
      }
    },
  };
}

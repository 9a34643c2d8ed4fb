import type { Config } from "../../platform/config/config.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";

/** Parallel tabs work because every attempt has a cookie of its own; no person has more of them open than this. */
const attemptCookiesMax = 8;

/** The `__Host-` prefix needs https; plain http is only ever localhost. */
function prefixOf(config: Config): string {
  return config.baseUrl.startsWith("https:") ? "__Host-" : "";
}

function sessionCookieName(config: Config): string {
  return `${prefixOf(config)}svc_session`;
}

function attemptCookiePrefix(config: Config): string {
  return `${prefixOf(config)}svc_login_`;
}

function attemptCookieName(config: Config, loginId: string): string {
  return `${attemptCookiePrefix(config)}${loginId}`;
}

/** Cookies by name; the first of a name counts, since a browser sends the more specific one first. */
function parseCookies(header: string | undefined): ReadonlyMap<string, string> {
  const cookies = new Map<string, string>();
  for (const part of (header ?? "").split(";")) {
    const at = part.indexOf("=");
    const name = part.slice(0, at).trim();
    if (at > 0 && !cookies.has(name)) cookies.set(name, part.slice(at + 1).trim());
  }
  return cookies;
}

function setCookie(
  config: Config,
  name: string,
  { value, maxAgeSeconds }: { value: string; maxAgeSeconds: number },
): string {
  const secure = config.baseUrl.startsWith("https:") ? "; Secure" : "";
  return `${name}=${value}; Path=/; Max-Age=${maxAgeSeconds}; HttpOnly; SameSite=Lax${secure}`;
}

/** Has the browser forget a cookie. */
function endedCookie(config: Config, name: string): string {
  return setCookie(config, name, { value: "", maxAgeSeconds: 0 });
}

export function sessionCookie(config: Config, secret: string): string {
  return setCookie(config, sessionCookieName(config), {
    value: secret,
    maxAgeSeconds: config.sessionAbsoluteSeconds,
  });
}

export function endedSessionCookie(config: Config): string {
  return endedCookie(config, sessionCookieName(config));
}

/** SHA-256 of a cookie secret of 32 bytes in base64url, or null when it is spelled otherwise. */
function secretHash(value: string | undefined): Buffer | null {
  if (value === undefined || !/^[A-Za-z0-9_-]{43}$/.test(value)) return null;
  return sha256(value);
}

/** The hash of the secret that this browser holds for an attempt, or null. */
export function attemptSecretHash(
  config: Config,
  header: string | undefined,
  loginId: string,
): Buffer | null {
  const value = parseCookies(header).get(attemptCookieName(config, loginId));
  return secretHash(value?.split(".")[1]);
}

/** The hash of the session secret that this browser holds, or null. */
export function sessionSecretHash(config: Config, header: string | undefined): Buffer | null {
  return secretHash(parseCookies(header).get(sessionCookieName(config)));
}

/** Whether a call came with any cookie of ours, good or not. */
export function sendsOurCookies(config: Config, header: string | undefined): boolean {
  return [...parseCookies(header).keys()].some(
    (name) => name === sessionCookieName(config) || name.startsWith(attemptCookiePrefix(config)),
  );
}

export interface NewAttemptCookie {
  readonly loginId: string;
  readonly secret: string;
  readonly createdAt: number;
  readonly lifetimeSeconds: number;
  /** The login that this one restarts: its cookie expires soon, so no other one has to make room. */
  readonly replacedId?: string;
}

/** The logins that this browser holds cookies of, the newest first. */
export function heldLoginIds(config: Config, header: string | undefined): string[] {
  const prefix = attemptCookiePrefix(config);
  return heldCookies(config, header).map(({ name }) => name.slice(prefix.length));
}

/**
 * Cookies of the same second are ordered by where they come in the header: the browser sends the oldest first (RFC 6265
 * section 5.4).
 */
function heldCookies(
  config: Config,
  header: string | undefined,
): { name: string; createdAt: number }[] {
  return [...parseCookies(header)]
    .toReversed()
    .filter(([name]) => name.startsWith(attemptCookiePrefix(config)))
    .map(([name, value]) => ({ name, createdAt: Number(value.split(".")[0]) || 0 }))
    .toSorted((a, b) => b.createdAt - a.createdAt);
}

/** `Set-Cookie` values for a new attempt: its own cookie, and the end of the oldest beyond the eighth. */
export function attemptCookies(
  config: Config,
  header: string | undefined,
  made: NewAttemptCookie,
): string[] {
  const replaced = attemptCookieName(config, made.replacedId ?? "");
  const evicted = heldCookies(config, header)
    .filter(({ name }) => name !== replaced)
    .slice(attemptCookiesMax - 1)
    .map(({ name }) => endedCookie(config, name));
  const own = setCookie(config, attemptCookieName(config, made.loginId), {
    value: `${made.createdAt}.${made.secret}`,
    maxAgeSeconds: made.lifetimeSeconds,
  });
  return [own, ...evicted];
}

/** A second press of a button follows the first within seconds. */
export const secondPressSeconds = 60;

/** The cookie of a finished login: it expires soon, and is the first to make room for others. */
export function finishedAttemptCookie(
  config: Config,
  header: string | undefined,
  loginId: string,
): string {
  const name = attemptCookieName(config, loginId);
  const [, secret = ""] = parseCookies(header).get(name)?.split(".") ?? [];
  return setCookie(config, name, { value: `0.${secret}`, maxAgeSeconds: secondPressSeconds });
}

/**
 * The cookie of a restarted login: treated like that of a finished one, unless another one would have to make room for
 * it.
 */
export function restartedAttemptCookie(
  config: Config,
  header: string | undefined,
  loginId: string,
): string {
  if (heldCookies(config, header).length < attemptCookiesMax)
    return finishedAttemptCookie(config, header, loginId);
  return endedCookie(config, attemptCookieName(config, loginId));
}

import { type Address, buildLoginSession, buildLink, type LoginSession } from "@svc/protocol";
import type { Acr } from "../../accounts/index.ts";
import type { AuthorizationRequest } from "../authorization/authorization-request.ts";

/** `gathering`: the acting member of a business has approved, others are asked. */
type AttemptStatus = "waiting" | "claimed" | "gathering" | "approved" | "finished" | "failed";

/** Why a login ended without a code; `restarted` is what the old page of a restarted login is told. */
export const attemptFailures = [
  "expired",
  "wrong_number",
  "declined",
  "not_started",
  "other_browser",
  "restarted",
] as const;
export type AttemptFailure = (typeof attemptFailures)[number];

/** How a login was opened by the wallet; it has to be finished in the same way. */
export type Channel = "qr" | "app-link";

/** One attempt to log in, as stored: from the authorization request to the code. */
export interface Attempt {
  readonly id: string;
  readonly clientId: string;
  readonly request: AuthorizationRequest;
  readonly status: AttemptStatus;
  readonly failure: AttemptFailure | null;
  readonly browserSha256: Buffer;
  readonly browserNetwork: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly restarts: number;
  readonly isStatic: boolean;
  readonly isContested: boolean;
  readonly channel: Channel | null;
  readonly sessionText: string | null;
  readonly connection: string | null;
  readonly claimedBy: Address | null;
  readonly claimSha256: string | null;
  readonly digits: string | null;
  readonly requestObject: string | null;
  readonly acr: Acr | null;
  /** The business that the acting member logs in for. */
  readonly business: string | null;
  /** Unix seconds: when other members were asked; null if nobody had to be. */
  readonly gatheringSince: number | null;
}

export function isEndedBy(attempt: Attempt, failure: AttemptFailure): boolean {
  return attempt.status === "failed" && attempt.failure === failure;
}

/**
 * Whether the time of the attempt is over at `now`. While members are asked, that is only after its last second, in
 * which their votes still count.
 */
export function isTimeOver(
  { status, expiresAt }: Pick<Attempt, "status" | "expiresAt">,
  now: number,
): boolean {
  return status === "gathering" ? expiresAt < now : expiresAt <= now;
}

/** The ids of attempts: 16 random bytes in base64url. */
export const loginIdPattern = "^[A-Za-z0-9_-]{22}$";

/** How often a failed login may be restarted from its page. */
export const restartsMax = 3;

/** The path of a login's page. */
export function pagePathOf(loginId: string): string {
  return `/oauth2/login/${loginId}`;
}

/** `conn` of the QR code, and of the link on the same device. */
export function connectionOf(base: string, channel: Channel, loginId: string): string {
  return `${base}/w/${channel === "qr" ? "l" : "b"}/${loginId}`;
}

export function qrLink(base: string, session: LoginSession): string {
  return buildLink({
    action: "login",
    session: buildLoginSession(session),
    connection: connectionOf(base, "qr", session.loginId),
    returnType: "callback",
  });
}

export function sameDeviceLink(base: string, loginId: string): string {
  return buildLink({
    action: "login",
    session: loginId,
    connection: connectionOf(base, "app-link", loginId),
    returnType: "app-link",
  });
}

/** The URL to which a failed or declined login sends the browser (RFC 6749 section 4.1.2.1, RFC 9207). */
export function errorLocation(
  request: Pick<AuthorizationRequest, "redirectUri" | "state">,
  issuer: string,
  error: { code: string; description: string },
): string {
  return withQuery(request.redirectUri, {
    error: error.code,
    error_description: error.description,
    ...(request.state === undefined ? {} : { state: request.state }),
    iss: issuer,
  });
}

export function codeLocation(request: AuthorizationRequest, issuer: string, code: string): string {
  return withQuery(request.redirectUri, {
    code,
    ...(request.state === undefined ? {} : { state: request.state }),
    iss: issuer,
  });
}

/** Adds parameters to an address as registered, keeping its own query to the letter (RFC 6749 section 3.1.2). */
export function withQuery(uri: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString();
  if (!uri.includes("?")) return `${uri}?${query}`;
  return /[?&]$/.test(uri) ? `${uri}${query}` : `${uri}&${query}`;
}

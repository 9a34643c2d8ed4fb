import { hkdfSync, type KeyObject } from "node:crypto";
import { buildLoginSession, buildLink, type LoginSession } from "@svc/protocol";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import type { Acr } from "../authorization/acr.ts";
import type { AuthorizationRequest } from "../authorization/authorization-request.ts";

/** `gathering`: the acting member of a business has approved, others are asked. */
type AttemptStatus = "waiting" | "claimed" | "gathering" | "approved" | "finished" | "failed";

/** Why a login ended without a code; `restarted` is told to the page that was left behind. */
export const attemptFailures = [
  "expired",
  "wrong_number",
  "declined",
  "not_started",
  "other_browser",
  "restarted",
] as const;
export type AttemptFailure = (typeof attemptFailures)[number];

/** How a login was opened; it cannot be finished the other way. */
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
  readonly claimedBy: string | null;
  readonly claimSha256: string | null;
  readonly digits: string | null;
  readonly requestObject: string | null;
  readonly acr: Acr | null;
  /** The business that the acting member logs in for. */
  readonly business: string | null;
  /** When other members were asked, Unix seconds; null where nobody had to be. */
  readonly gatheringSince: number | null;
}

const stepSeconds = 4;
export const restartsMax = 3;
/** The step of a code that does not rotate. */
const staticStep = 0;

export function stepAt(now: number): number {
  return Math.floor(now / stepSeconds);
}

const macBytes = 16;
/** A page shows about 31 steps; one derivation yields the macs of a group at a quarter of their price one by one. */
const stepsPerGroup = 32;

/**
 * The macs of a group of steps: HKDF-SHA256 (RFC 5869: HMAC-SHA256 over login and steps), 128 bits for each step. Without
 * the installation's key nobody can make the next one.
 */
function groupMacs(key: KeyObject, loginId: string, group: number): Buffer {
  return Buffer.from(hkdfSync("sha256", key, loginId, `steps ${group}`, stepsPerGroup * macBytes));
}

function stepMac(key: KeyObject, loginId: string, step: number): string {
  return macAt(groupMacs(key, loginId, Math.floor(step / stepsPerGroup)), step);
}

function macAt(macs: Buffer, step: number): string {
  const at = (step % stepsPerGroup) * macBytes;
  return macs.toString("base64url", at, at + macBytes);
}

/** Which steps the page of a login may show, and their macs in that order. */
export function pageSteps(
  key: KeyObject,
  attempt: Pick<Attempt, "id" | "isStatic" | "createdAt" | "expiresAt">,
): { firstStep: number; macs: string[] } {
  if (attempt.isStatic)
    return { firstStep: staticStep, macs: [stepMac(key, attempt.id, staticStep)] };
  const firstStep = stepAt(attempt.createdAt);
  const lastStep = stepAt(attempt.expiresAt);
  const macs: string[] = [];
  let group = groupMacs(key, attempt.id, Math.floor(firstStep / stepsPerGroup));
  for (let step = firstStep; step <= lastStep; step += 1) {
    if (step > firstStep && step % stepsPerGroup === 0)
      group = groupMacs(key, attempt.id, step / stepsPerGroup);
    macs.push(macAt(group, step));
  }
  return { firstStep, macs };
}

export type SessionFault = "forged" | "stale";

/** The clocks of two processes are up to 4 s apart (`skewLimitMs`): the page may count by one that is a step ahead of ours. */
const stepsAheadMax = 1;

/** Judges what a wallet scanned: the mac must be ours, the step the current one or next to it. */
export function judgeSession(
  key: KeyObject,
  session: LoginSession,
  now: number,
): SessionFault | "rolling" | "static" {
  const expected = Buffer.from(stepMac(key, session.loginId, session.step));
  if (!equalBytes(expected, Buffer.from(session.mac))) return "forged";
  if (session.step === staticStep) return "static";
  const age = stepAt(now) - session.step;
  return age >= -stepsAheadMax && age <= 1 ? "rolling" : "stale";
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

/** Where a failed or declined login sends the browser (RFC 6749 section 4.1.2.1, RFC 9207). */
export function errorLocation(
  request: Pick<AuthorizationRequest, "redirectUri" | "state">,
  issuer: string,
  error: { code: string; description?: string },
): string {
  return withQuery(request.redirectUri, {
    error: error.code,
    ...(error.description === undefined ? {} : { error_description: error.description }),
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

/** Adds parameters to a redirect URI as registered, keeping its own query to the letter (RFC 6749 section 3.1.2). */
function withQuery(uri: string, parameters: Record<string, string>): string {
  const query = new URLSearchParams(parameters).toString();
  return `${uri}${uri.includes("?") ? (/[?&]$/.test(uri) ? "" : "&") : "?"}${query}`;
}

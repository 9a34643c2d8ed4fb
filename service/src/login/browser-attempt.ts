import { type Address, type BusinessPart, parseAddress, shortAddress } from "@svc/protocol";
import type { Client } from "../accounts/index.ts";
import { equalBytes } from "../platform/mac.ts";
import { Problem } from "../platform/problems.ts";
import {
  type Approved,
  businessPartOf,
  decide,
  isSignedBy,
  isSignedWithoutClaim,
} from "./approve.ts";
import type { Acr } from "./acr.ts";
import { makeCode } from "./authorization-code.ts";
import {
  type Attempt,
  type AttemptFailure,
  type Channel,
  codeLocation,
  connectionOf,
  errorLocation,
  restartsMax,
} from "./attempt.ts";
import * as store from "./attempt-store.ts";
import { type BrowserCall, newAttempt, newSession } from "./authorize.ts";
import {
  attemptSecretHash,
  endedAttemptCookie,
  finishedAttemptCookie,
  secretHash,
  sessionCookie,
  sessionSecretHash,
} from "./browser-cookies.ts";
import { getClient, needsNumber, readAttempt, refuseUnfit } from "./claim.ts";
import { endAttempt } from "./end-attempt.ts";
import type { LoginContext } from "./login-context.ts";

/** What the page of an attempt may know; the same words go over the status channel. */
export type LoginState =
  | { readonly kind: "waiting" }
  | {
      readonly kind: "claimed";
      readonly digits: string | null;
      readonly identity: string;
      readonly contested: boolean;
    }
  /** Other members of a business are asked; who, how many and how they vote is nobody's business here. */
  | { readonly kind: "gathering" }
  | { readonly kind: "approved" }
  | { readonly kind: "finished" }
  | {
      readonly kind: "failed";
      readonly failure: AttemptFailure;
      readonly canRestart: boolean;
      readonly location?: string;
    };

/** The attempt and its client, for the browser that started it. @throws {Problem} login_not_found for any other */
export async function getBrowserAttempt(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<{ attempt: Attempt; client: Client }> {
  const attempt = await readAttempt(ctx, loginId);
  const held = attemptSecretHash(ctx.config, browser.cookieHeader, loginId);
  if (held === null || !equalBytes(held, attempt.browserSha256))
    throw new Problem("login_not_found");
  return { attempt, client: await getClient(ctx, attempt) };
}

export function stateOf(ctx: LoginContext, attempt: Attempt, client: Client): LoginState {
  if (attempt.status === "failed") return failedState(ctx, attempt, attempt.failure ?? "expired");
  if (attempt.status === "finished") return { kind: "finished" };
  if (attempt.expiresAt <= ctx.clock.now()) return failedState(ctx, attempt, "expired");
  // The link of the same device comes back by itself in a page of its own.
  if (attempt.status === "approved") {
    const isAwaited = attempt.channel === "qr" || attempt.gatheringSince !== null;
    return isAwaited ? { kind: "approved" } : { kind: "waiting" };
  }
  if (attempt.status === "gathering") return { kind: "gathering" };
  if (attempt.status === "waiting" || attempt.channel === "app-link") return { kind: "waiting" };
  const user = parseAddress(attempt.claimedBy ?? "");
  return {
    kind: "claimed",
    digits: needsNumber(client, attempt) ? attempt.digits : null,
    identity: user === null ? "" : shortAddress(user),
    contested: attempt.isContested,
  };
}

function failedState(ctx: LoginContext, attempt: Attempt, failure: AttemptFailure): LoginState {
  const isRefusal = failure === "declined" || failure === "not_started";
  const canRestart = !isRefusal && failure !== "restarted" && attempt.restarts < restartsMax;
  return {
    kind: "failed",
    failure,
    canRestart,
    ...(isRefusal ? { location: backLocation(ctx, attempt) } : {}),
  };
}

/** "Back to the client": the login is given up (RFC 6749 section 4.1.2.1). */
export function backLocation(ctx: LoginContext, attempt: Attempt): string {
  return errorLocation(attempt.request, ctx.config.baseUrl, {
    code: "access_denied",
    description: "the login was not approved",
  });
}

export interface Released {
  readonly location: string;
  readonly cookies: readonly string[];
}

/**
 * Releases the code to the browser that started the login, once.
 *
 * @throws {Problem} login_not_found, login_over, not_claimed (while nobody has approved)
 */
export async function finishLogin(
  ctx: LoginContext,
  loginId: string,
  { browser, channel }: { browser: BrowserCall; channel: Channel },
): Promise<Released> {
  const browserSha256 = attemptSecretHash(ctx.config, browser.cookieHeader, loginId);
  if (browserSha256 === null) throw new Problem("login_not_found");
  const now = ctx.clock.now();
  const code = makeCode(ctx.random, loginId);
  const session = newSession(ctx);
  const request = await store.finishAttempt(ctx.db, loginId, {
    now,
    browserSha256,
    channel,
    codeSha256: code.sha256,
    codeExpiresAt: now + ctx.config.codeLifetimeSeconds,
    sessionId: session.id,
    sessionSecretSha256: secretHash(session.secret) ?? Buffer.alloc(32),
    presentedSecretSha256: sessionSecretHash(ctx.config, browser.cookieHeader),
    sessionIdleSeconds: ctx.config.sessionIdleSeconds,
    sessionAbsoluteSeconds: ctx.config.sessionAbsoluteSeconds,
  });
  ctx.recent.forget(loginId);
  if (request === null) return refuseFinish(ctx, loginId, { browser, channel });
  ctx.metrics.logins.inc({ outcome: "finished" });
  return {
    location: codeLocation(request, ctx.config.baseUrl, code.text),
    // The attempt's cookie stays a little: a form that was sent twice still finds its page, which leads on.
    cookies: [
      sessionCookie(ctx.config, session.secret),
      finishedAttemptCookie(ctx.config, browser.cookieHeader, loginId),
    ],
  };
}

async function refuseFinish(
  ctx: LoginContext,
  loginId: string,
  { browser, channel }: { browser: BrowserCall; channel: Channel },
): Promise<Released> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  if (attempt.status === "gathering" && channel === "app-link")
    return { location: `/oauth2/login/${loginId}`, cookies: [] };
  if (attempt.channel !== null && attempt.channel !== channel) throw new Problem("wrong_channel");
  const isOpen =
    (attempt.status === "waiting" || attempt.status === "claimed") &&
    attempt.expiresAt > ctx.clock.now();
  throw new Problem(
    isOpen ? "not_claimed" : "login_over",
    isOpen ? { message: "nobody has approved this login yet" } : {},
  );
}

/** Switches the page to a single code without scripts, for good; where it is too late for that, the page says what happened. @throws {Problem} login_not_found */
export async function showStaticCode(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<void> {
  await getBrowserAttempt(ctx, loginId, browser);
  await store.makeStatic(ctx.db, loginId, ctx.clock.now());
  ctx.recent.forget(loginId);
}

/** The same request once more, as a new login; null where that cannot be: finished, refused, or restarted too often. @throws {Problem} login_not_found */
export async function restartLogin(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<{ loginId: string; cookies: readonly string[] } | null> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  const { scope } = attempt.request;
  const fresh = newAttempt(ctx, browser, { scope, replacedId: loginId });
  if (!(await store.restartAttempt(ctx.db, attempt.id, { ...fresh.attempt, restartsMax })))
    return null;
  ctx.recent.forget(loginId);
  return {
    loginId: fresh.attempt.id,
    cookies: [...fresh.cookies, endedAttemptCookie(ctx.config, loginId)],
  };
}

/** What the wallet's link brings back on the same device (decisions section 2, the QR page, rule 6). */
export interface Returned {
  readonly session: string;
  readonly svcID: string;
  readonly signature: string;
  readonly business?: BusinessPart;
}

/**
 * Reads and consumes the wallet's answer on the same device; once more, it leads on again until the code is released. A
 * valid answer that arrives in another browser ends the login.
 *
 * @throws {Problem} login_not_found, other_browser, wrong_channel, signature_wrong, login_over, identity_refused, acr_unmet, and for a
 *   business not_claimed and what `approveForBusiness` throws
 */
export async function returnOnSameDevice(
  ctx: LoginContext,
  loginId: string,
  { returned, browser }: { returned: Returned; browser: BrowserCall },
): Promise<Approved> {
  const user = parseAddress(returned.svcID);
  if (user === null || returned.session !== loginId) throw new Problem("login_not_found");
  const attempt = await readAttempt(ctx, loginId);
  const client = await getClient(ctx, attempt);
  if (attempt.channel === "qr") throw new Problem("wrong_channel");
  // Before a contract is asked about a signature: what is over costs nothing.
  const isOver = attempt.status === "finished" || attempt.status === "failed";
  if (isOver || attempt.expiresAt <= ctx.clock.now()) throw new Problem("login_over");
  const connection = connectionOf(ctx.config.baseUrl, "app-link", loginId);
  const part = businessPartOf(attempt, returned.business);
  const isClaimed = attempt.claimedBy === user && attempt.requestObject !== null;
  if (part !== null && !isClaimed) throw new Problem("not_claimed");
  const signed = { user, signature: returned.signature, callerAddress: browser.address };
  const isValid = isClaimed
    ? await isSignedBy(ctx, { ...signed, attempt, client, code: "" })
    : await isSignedWithoutClaim(ctx, { ...signed, loginId, session: loginId, connection });
  if (!isValid) throw new Problem("signature_wrong");
  const held = attemptSecretHash(ctx.config, browser.cookieHeader, loginId);
  if (held === null || !equalBytes(held, attempt.browserSha256)) {
    await endAttempt(ctx, attempt, "other_browser");
    throw new Problem("other_browser");
  }
  const acr = "urn:svc:acr:same-device" as const;
  refuseUnfit(attempt, { user, acr });
  const outcome = isClaimed
    ? await decide(ctx, { attempt, client, user, part })
    : await approveAtOnce(ctx, { loginId, user, client, connection, acr });
  ctx.recent.forget(loginId);
  return outcome ?? repeatReturn(ctx, loginId, user);
}

/** Another call was faster: the browser may have sent the same once more, and goes where the first one led. */
async function repeatReturn(ctx: LoginContext, loginId: string, user: Address): Promise<Approved> {
  const { status, channel, claimedBy } = await readAttempt(ctx, loginId);
  const isOurs =
    (status === "gathering" || status === "approved") &&
    channel === "app-link" &&
    claimedBy === user;
  if (!isOurs) throw new Problem("login_over");
  return status === "gathering" ? "waiting" : "approved";
}

/** Claim and approval in one: the wallet asked nobody before. */
async function approveAtOnce(
  ctx: LoginContext,
  given: { loginId: string; user: Address; client: Client; connection: string; acr: Acr },
): Promise<Approved | null> {
  const { loginId, client, ...approval } = given;
  const isApproved = await store.approveUnclaimed(ctx.db, loginId, {
    ...approval,
    organizationId: client.organizationId,
    channel: "app-link",
    sessionText: loginId,
    now: ctx.clock.now(),
  });
  return isApproved ? "approved" : null;
}

/** The person gives up while other members are asked; nobody is any more. @returns where to go, or null for a login that does not wait so */
export async function giveUpGathering(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<string | null> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  if (attempt.status !== "gathering") return null;
  await endAttempt(ctx, attempt, "declined");
  return backLocation(ctx, attempt);
}

/** The wallet's refusal on the same device; only the browser that began can end its login so. @returns where to go */
export async function refuseOnSameDevice(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<string> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  if (attempt.channel === "qr") throw new Problem("wrong_channel");
  await endAttempt(ctx, attempt, "declined");
  return backLocation(ctx, attempt);
}

import type { Client } from "../../accounts/index.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { oauthProblemOf } from "../../platform/http/http-errors.ts";
import { randomId } from "../../platform/ids.ts";
import { type OAuthCode, OAuthProblem } from "../../platform/http/problems.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { acrAtLeast } from "./acr.ts";
import { approvedAcr } from "./approved-acr.ts";
import { makeCode } from "../token/authorization-code.ts";
import { type Attempt, codeLocation, errorLocation } from "../attempt/attempt.ts";
import * as store from "../attempt/attempt-store.ts";
import { lengthMaxOf } from "./authorization-parameters.ts";
import { sessionSecretHash } from "../attempt/browser-cookies.ts";
import { type AuthorizationRequest, getOnce, firstValueOf } from "./authorization-request.ts";
import { blankAttempt, type BrowserCall, newAttempt } from "../attempt/new-attempt.ts";
import type { LoginContext } from "../login-context.ts";
import { beginOnce, findPushedRequest, pushedIdOf, refusePushed } from "./pushed-request.ts";
import { type FoundSession, findSession } from "../session/session-store.ts";
import { judgeRequest } from "./judged-request.ts";
import { isBusinessScope, withoutRefresh } from "./scope.ts";
import { limitClient } from "./start-limits.ts";

export type AuthorizeOutcome =
  | {
      readonly kind: "page";
      readonly attempt: Attempt;
      readonly client: Client;
      readonly cookies: readonly string[];
    }
  | Redirect;

interface Redirect {
  readonly kind: "redirect";
  readonly location: string;
  /** The error that `location` reports to the client. */
  readonly refusal?: OAuthCode;
  /** An unexpected failure of ours, for the log. */
  readonly failure?: unknown;
}

/**
 * Judges an authorization request and answers it: with a QR page, from the browser's session, or with an error at the
 * client's redirect URI. With `prompt=none` no page may be shown (OpenID Connect Core section 3.1.2.1), so then our own
 * failures are reported to the client too (RFC 6749 section 4.1.2.1).
 *
 * @throws {OAuthProblem} when client or redirect URI are wrong: shown as a page, never sent anywhere
 */
export async function authorize(
  ctx: LoginContext,
  form: Form,
  browser: BrowserCall,
): Promise<AuthorizeOutcome> {
  const client = await getClientOf(ctx, form);
  await limitClient(ctx, client, browser.address);
  const { given, pushed } = await resolvePushed(ctx, form);
  const isPushed = pushed.pushedId !== undefined;
  const judged = await judgeRequest(ctx, client, { given, isPushed });
  if ("fault" in judged) return refuse(ctx, given, judged);
  const { client: current, redirectUri, request } = judged;
  try {
    return await answer(ctx, { client: current, request: { ...request, ...pushed } }, browser);
  } catch (error) {
    const known = oauthProblemOf(error);
    // The pushed request was used meanwhile: answered like one that had been used before.
    if (known?.code === "invalid_request_uri") throw known;
    // A person can read the error page and try again; with `prompt=none` nobody sees it.
    if (!(error instanceof OAuthProblem) && !request.prompt.includes("none")) throw error;
    const fault = known ?? new OAuthProblem("server_error", "something failed here");
    const refusal = refuse(ctx, given, { redirectUri, fault });
    return known === null ? { ...refusal, failure: error } : refusal;
  }
}

/** Tells the client of a fault. @throws {OAuthProblem} the fault, where there is no redirect URI to tell it at */
function refuse(
  { config }: Pick<LoginContext, "config">,
  given: Form,
  { redirectUri, fault }: { redirectUri: string | null; fault: OAuthProblem },
): Redirect {
  if (redirectUri === null) throw fault;
  const state = returnableState(given);
  const location = errorLocation(
    { redirectUri, ...(state === undefined ? {} : { state }) },
    config.baseUrl,
    { code: fault.code, description: fault.message },
  );
  return { kind: "redirect", location, refusal: fault.code };
}

/**
 * A pushed request replaces all parameters but the client id (RFC 9126 section 4). Any other `request_uri` stays among
 * the parameters, for {@link judgeRequest} to refuse.
 */
async function resolvePushed(
  ctx: LoginContext,
  form: Form,
): Promise<{ given: Form; pushed: Pick<AuthorizationRequest, "pushedId"> }> {
  if (firstValueOf(form, "request_uri") === undefined) return { given: form, pushed: {} };
  const pushedId = pushedIdOf(getOnce(form, "request_uri"));
  if (pushedId === null) return { given: form, pushed: {} };
  const given = await findPushedRequest(ctx, pushedId, firstValueOf(form, "client_id") ?? "");
  return given === null ? refusePushed() : { given, pushed: { pushedId } };
}

async function getClientOf(ctx: LoginContext, given: Form): Promise<Client> {
  const id = getOnce(given, "client_id");
  const client = id.length > lengthMaxOf("client_id") ? null : await ctx.clients.find(id);
  if (client === null)
    throw new OAuthProblem("invalid_client", "the client is unknown", { status: 400 });
  return client;
}

/** The state to send back with an error: only one that was given once and is not too long. */
function returnableState(given: Form): string | undefined {
  const state = given["state"];
  if (typeof state !== "string" || state === "") return undefined;
  return state.length <= lengthMaxOf("state") ? state : undefined;
}

interface Asked {
  readonly client: Client;
  readonly request: AuthorizationRequest;
}

async function answer(
  ctx: LoginContext,
  asked: Asked,
  browser: BrowserCall,
): Promise<AuthorizeOutcome> {
  const session = await usableSession(ctx, asked, browser);
  const answered =
    session === null ? null : await answerFromSession(ctx, { ...asked, session }, browser);
  if (answered !== null) return answered;
  if (asked.request.prompt.includes("none"))
    throw new OAuthProblem("login_required", "the user has to log in with the wallet");
  return startAttempt(ctx, asked, browser);
}

/** A hash that no session has. */
const noSessionSha256 = sha256("");

/** The session that may answer for the wallet (decisions section 2, Session), or null. */
async function usableSession(
  ctx: LoginContext,
  asked: Asked,
  browser: BrowserCall,
): Promise<FoundSession | null> {
  const { client, request } = asked;
  // With `prompt=none` any client can make any browser ask invisibly. So sessions are looked up even without a cookie:
  // the response time must not reveal whether somebody is logged in here.
  const absent = request.prompt.includes("none") ? noSessionSha256 : null;
  const secretSha256 = sessionSecretHash(ctx.config, browser.cookieHeader) ?? absent;
  if (secretSha256 === null || !isForSession(asked)) return null;
  const now = ctx.clock.now();
  const session = await findSession(ctx.db, {
    secretSha256,
    now,
    idleSeconds: ctx.config.sessionIdleSeconds,
    absoluteSeconds: ctx.config.sessionAbsoluteSeconds,
    clientId: client.id,
  });
  const acr = session === null ? null : approvedAcr(session, request);
  if (session === null || acr === null) return null;
  const found = { ...session, acr };
  return suffices(found, request, now) ? found : null;
}

/** Whether any session may answer this request. */
function isForSession({ client, request }: Asked): boolean {
  // Acting for a business takes a confirmation in the wallet every time.
  if (isBusinessScope(request.scope)) return false;
  // A scope that only asks for refresh tokens leaves nothing that a session may give.
  if (withoutRefresh(request.scope) === "") return false;
  const isPromptless = request.prompt.length === 0 || request.prompt.includes("none");
  return isPromptless && client.authenticationMethod !== "none";
}

/** Whether the session is young and sure enough for the request, and of the person that it means. */
function suffices(session: FoundSession, request: AuthorizationRequest, now: number): boolean {
  const { maxAge, acrMinimum } = request;
  // No login is young enough for 0, not even one of this second (OpenID Connect Core section 3.1.2.1: the same as prompt=login).
  if (maxAge === 0) return false;
  if (maxAge !== undefined && now - session.authenticatedAt > maxAge) return false;
  if (acrMinimum !== undefined && !acrAtLeast(session.acr, acrMinimum)) return false;
  // A hint decides nothing, but a client that hints at one person does not mean the session of another.
  const meant = request.expectedUser ?? request.hintedUser;
  return meant === undefined || meant === session.user;
}

/** @returns null for a session that ended meanwhile */
async function answerFromSession(
  ctx: LoginContext,
  { client, request, session }: Asked & { session: FoundSession },
  browser: BrowserCall,
): Promise<AuthorizeOutcome | null> {
  const now = ctx.clock.now();
  const loginId = randomId(ctx.random, 16);
  const code = makeCode(ctx.random, loginId);
  const answered = {
    id: loginId,
    clientId: client.id,
    request: { ...request, scope: withoutRefresh(request.scope), wantsRefresh: false },
    user: session.user,
    acr: session.acr,
    authenticatedAt: session.authenticatedAt,
    sessionId: session.id,
    browserSha256: ctx.random.bytes(32),
    browserNetwork: browser.network,
    now,
    codeSha256: code.sha256,
    codeExpiresAt: now + ctx.config.codeLifetimeSeconds,
  };
  const isAnswered = await beginOnce(ctx, request, async (tx) =>
    store.insertAnsweredAttempt(tx, answered),
  );
  if (!isAnswered) return null;
  return { kind: "redirect", location: codeLocation(request, ctx.config.baseUrl, code.text) };
}

async function startAttempt(
  ctx: LoginContext,
  { client, request }: Asked,
  browser: BrowserCall,
): Promise<AuthorizeOutcome> {
  const fresh = newAttempt(ctx, browser, request);
  const attempt: Attempt = {
    ...blankAttempt,
    ...fresh.attempt,
    clientId: client.id,
    request,
    restarts: 0,
  };
  await beginOnce(ctx, request, async (tx) => {
    await store.insertAttempt(tx, attempt);
    return true;
  });
  ctx.recent.put(attempt);
  return { kind: "page", attempt, client, cookies: fresh.cookies };
}

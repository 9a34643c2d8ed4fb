import { createHash, randomBytes } from "node:crypto";

import { readCallback } from "./callback.ts";
import { callIssuer } from "./issuer-call.ts";
import { MerchantError, misconfigured } from "./merchant-error.ts";
import {
  formOf,
  postForm,
  refusalOf,
  requestTokens,
  type Form,
  type TokenEndpointContext,
} from "./token-endpoint.ts";
import type { IdToken, LogoutToken, Tokens } from "./token-verification.ts";

/** What a login asks for. Every member may be left out. */
export interface LoginRequest {
  /**
   * Default `openid offline offline_access`. Add `business` to let people act for a business. `openid` must be part of
   * it.
   */
  scope?: string;
  /** Default `consent`: the wallet always asks. `null` lets the broker answer from its own session. */
  prompt?: "consent" | "login" | "select_account" | "none" | null;
  /**
   * Default 256 random bits. A text of your own must be as hard to guess, because it ties the answer to this browser.
   */
  state?: string;
  /** Languages for the broker's page, best first, separated by spaces: `de en`. */
  uiLocales?: string;
  /** The weakest way to approve that you accept, such as `urn:svc:acr:qr-near`; compare `claims.acr` afterwards. */
  acrValues?: string;
  /** Seconds since the person last approved; `finish` checks it. */
  maxAge?: number;
  /** The identity that is expected to log in. */
  loginHint?: string;
}

/** What `finish` needs from `start`. Keep it where only this browser can bring it back, such as a sealed cookie. */
export interface PendingLogin {
  state: string;
  nonce: string;
  codeVerifier: string;
  maxAge?: number;
}

/** A person who has logged in: what a verified id token says, and the tokens. */
export interface Login extends IdToken {
  idToken: string;
  accessToken: string;
  /**
   * Present with the scope `offline_access`. Each refresh returns a new one: store the new one and discard this one.
   */
  refreshToken?: string;
  /** Unix seconds: when the access token ends. */
  expiresAt: number;
}

/** What `/userinfo` says about the person behind an access token. */
export interface Userinfo {
  subject: string;
  claims: Record<string, unknown>;
}

/** Which login to end at the broker, and where the browser goes afterwards. */
export interface LogoutRequest {
  /** If absent, the broker asks whoever is still logged in there. */
  idToken?: string;
  /** Registered with the client, at the origin of `redirectUri`. If absent, people stay at the broker. */
  postLogoutRedirectUri?: string;
  state?: string;
}

interface LoginContext extends TokenEndpointContext {
  tokens: Tokens;
  issuerUrl: string;
  redirectUri: string;
  audience: string | undefined;
}

/**
 * The verbs of a login. All those that call the broker may throw issuer_unreachable, rate_limited, response_invalid and
 * issuer_mismatch.
 */
export interface LoginVerbs {
  /**
   * Prepares a login: send the browser to `url`, keep the rest for `finish`. PKCE is always used (RFC 7636).
   *
   * @throws {MerchantError} configuration_invalid for a `scope` without `openid` and a `state` that is easy to guess
   */
  start: (request?: LoginRequest) => Promise<PendingLogin & { url: string }>;
  /**
   * Finishes a login at the callback: checks that this browser started it, redeems the code, and verifies the id token
   * in full.
   *
   * @param callbackUrl the URL of the callback request; path and query are enough
   * @throws {MerchantError} callback_invalid, state_mismatch, issuer_mismatch, access_denied, login_required,
   * authorization_refused, grant_refused, client_refused, request_refused, token_refused
   */
  finish: (callbackUrl: string | URL, pending: PendingLogin) => Promise<Login>;
  /**
   * Renews the tokens and uses the old refresh token up. A request whose answer is lost, or takes longer than four
   * seconds, is sent once more: for ten seconds the broker repeats its answer to the same refresh token.
   *
   * @param options `subject` is that of the login; an answer for anybody else is refused
   * @throws {MerchantError} grant_refused when the login has ended, subject_changed, client_refused, request_refused,
   * token_refused; configuration_invalid without `subject`
   */
  refresh: (refreshToken: string, options: { subject: string }) => Promise<Login>;
  /**
   * Asks the broker about the person.
   *
   * @param options `subject` is that of the login; an answer about anybody else is refused. Leave it out only if nobody
   * has logged in here, as in an API that gets the token from its caller
   * @throws {MerchantError} access_token_refused, subject_changed, request_refused; configuration_invalid for an empty
   * `subject`
   */
  userinfo: (accessToken: string, options?: { subject: string }) => Promise<Userinfo>;
  /**
   * Returns the URL that ends the login at the broker as well: send the browser there (RP-Initiated Logout 1.0).
   *
   * @throws {MerchantError} redirect_refused for a `postLogoutRedirectUri` at another origin than that of `redirectUri`
   */
  logoutUrl: (request: LogoutRequest) => Promise<string>;
  /**
   * Ends a token and all of its family (RFC 7009). A token that is unknown or has already ended is not an error.
   *
   * @throws {MerchantError} client_refused, request_refused
   */
  revoke: (token: string) => Promise<void>;
  /**
   * Verifies a back-channel logout token: end the sessions it names.
   *
   * @param options `now` in Unix seconds, by default the time of the SDK's own clock
   * @throws {MerchantError} token_refused; configuration_invalid
   */
  verifyLogoutToken: (jwt: string, options?: { now?: number }) => Promise<LogoutToken>;
}

/** Binds the verbs to one client of one broker. */
export function openLogin(context: LoginContext): LoginVerbs {
  return {
    start: (request = {}) => start(context, request),
    finish: (callbackUrl, pending) => finish(context, callbackUrl, pending),
    refresh: (refreshToken, options) => refresh(context, refreshToken, options?.subject),
    userinfo: (accessToken, options) => userinfo(context, accessToken, options),
    logoutUrl: (request) => logoutUrl(context, request),
    revoke: (token) => revoke(context, token),
    verifyLogoutToken: (jwt, options) => context.tokens.logoutToken(jwt, options),
  };
}

async function start(context: LoginContext, request: LoginRequest) {
  const { authorizationEndpoint } = await context.issuer.discovery();
  const { scope = scopeDefault } = request;
  // Without `openid` the broker sends no id token, and only `finish` would notice.
  if (!scope.split(" ").includes("openid")) throw misconfigured("scope");
  const state = request.state ?? randomText();
  if (state.length < stateLengthMin) throw misconfigured("state");
  const pending = { state, nonce: randomText(), codeVerifier: randomText() };
  const url = withQuery(
    authorizationEndpoint,
    authorizationQuery(context, { ...request, scope, ...pending }),
  );
  return { url, ...pending, ...(request.maxAge !== undefined && { maxAge: request.maxAge }) };
}

async function finish(
  context: LoginContext,
  callbackUrl: string | URL,
  pending: PendingLogin | undefined,
): Promise<Login> {
  // The cookie may be lost or damaged. Checked before anything is sent, because the request would use the code up.
  if (!pending?.nonce || !pending.state || !pending.codeVerifier)
    throw new MerchantError("state_mismatch");
  if (!URL.canParse(String(callbackUrl), context.redirectUri))
    throw new MerchantError("callback_invalid", { reason: "url" });
  const url = new URL(callbackUrl, context.redirectUri);
  const code = readCallback(url, { state: pending.state, issuer: context.issuerUrl });
  const response = await requestTokens(context, {
    grant_type: "authorization_code",
    code,
    redirect_uri: context.redirectUri,
    code_verifier: pending.codeVerifier,
  });
  const idToken = await context.tokens.idToken(response.idToken, {
    now: context.now(),
    nonce: pending.nonce,
    accessToken: response.accessToken,
    ...(pending.maxAge !== undefined && { maxAgeSeconds: pending.maxAge }),
  });
  return { ...response, ...idToken };
}

async function refresh(
  context: LoginContext,
  refreshToken: string,
  subject: string | undefined,
): Promise<Login> {
  // Checked before the request, which uses the refresh token up.
  if (!subject) throw misconfigured("subject");
  const response = await requestTokens(context, {
    grant_type: "refresh_token",
    refresh_token: refreshToken,
  });
  const checks = { now: context.now(), accessToken: response.accessToken };
  const idToken = await context.tokens.idToken(response.idToken, checks);
  // Core 1.0 section 12.2: the same person, or these are somebody else's tokens.
  if (idToken.subject !== subject) throw new MerchantError("subject_changed");
  return { ...response, ...idToken };
}

async function userinfo(
  context: LoginContext,
  accessToken: string,
  options: { subject: string } | undefined,
): Promise<Userinfo> {
  // An undefined subject, from a session that lost it, must not switch the check off.
  if (options !== undefined && !options.subject) throw misconfigured("subject");
  // In an API the token comes from a caller. `fetch` would refuse it in a header with an error that quotes it.
  if (!isBearerToken(accessToken)) throw new MerchantError("access_token_refused");
  const { userinfoEndpoint } = await context.issuer.discovery();
  const headers = { authorization: `Bearer ${accessToken}` };
  const answer = await callIssuer(context.fetch, { url: userinfoEndpoint, headers });
  const { status, body } = answer;
  // RFC 6750 section 3.1: only 401 means that the token has ended.
  if (status === 401) throw new MerchantError("access_token_refused");
  if (status !== 200) throw refusalOf(answer);
  const subject = body?.["sub"];
  if (body === null || typeof subject !== "string")
    throw new MerchantError("response_invalid", { reason: "sub" });
  // Core 1.0 section 5.3.2: the answer must be about the person of the id token, or it must not be used.
  if (subject !== (options?.subject ?? subject)) throw new MerchantError("subject_changed");
  return { subject, claims: body };
}

async function logoutUrl(context: LoginContext, request: LogoutRequest): Promise<string> {
  const { endSessionEndpoint } = await context.issuer.discovery();
  const back = request.postLogoutRedirectUri;
  if (back !== undefined && !isSameOrigin(back, context.redirectUri))
    throw new MerchantError("redirect_refused");
  return withQuery(endSessionEndpoint, {
    client_id: context.clientId,
    id_token_hint: request.idToken,
    post_logout_redirect_uri: back,
    state: request.state,
  });
}

async function revoke(context: LoginContext, token: string): Promise<void> {
  const { revocationEndpoint } = await context.issuer.discovery();
  const answer = await postForm(context, { token }, { url: revocationEndpoint });
  if (answer.status !== 200) throw refusalOf(answer);
}

/** RFC 6750 section 2.1, `b64token`. */
function isBearerToken(text: string): boolean {
  return /^[\w.~+/-]+=*$/.test(text);
}

const scopeDefault = "openid offline offline_access";

/** 22 characters of base64url hold 128 bits. */
const stateLengthMin = 22;

/** 256 bits in 43 characters of base64url, the shortest PKCE verifier that RFC 7636 section 4.1 allows. */
function randomText(): string {
  return randomBytes(32).toString("base64url");
}

function authorizationQuery(context: LoginContext, request: LoginRequest & PendingLogin): Form {
  return {
    client_id: context.clientId,
    redirect_uri: context.redirectUri,
    response_type: "code",
    scope: request.scope,
    state: request.state,
    nonce: request.nonce,
    code_challenge: createHash("sha256").update(request.codeVerifier).digest("base64url"),
    code_challenge_method: "S256",
    audience: context.audience,
    prompt: request.prompt === null ? undefined : (request.prompt ?? "consent"),
    access_type: "offline",
    ui_locales: request.uiLocales,
    acr_values: request.acrValues,
    max_age: request.maxAge?.toString(),
    login_hint: request.loginHint,
  };
}

function withQuery(endpoint: string, members: Form): string {
  const url = new URL(endpoint);
  for (const [name, value] of formOf(members)) url.searchParams.set(name, value);
  return url.href;
}

function isSameOrigin(one: string, other: string): boolean {
  return URL.canParse(one) && new URL(one).origin === new URL(other).origin;
}

import { createHash, timingSafeEqual } from "node:crypto";

import { type Address, addressOfSubject, isRecord } from "@svc/protocol";
import { errors, jwtVerify, type JWTPayload } from "jose";

import { parseBusiness, type Business } from "./business.ts";
import type { Issuer } from "./issuer.ts";
import { parseHeader } from "./jwt-header.ts";
import { MerchantError, misconfigured, requireGiven } from "./merchant-error.ts";
import { readNow } from "./unix-time.ts";

/** How far the clocks of broker and merchant may be apart. */
const toleranceSeconds = 30;

/** Names the event of a logout token (OpenID Connect Back-Channel Logout 1.0 section 2.4). */
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";

/** A genuine id token: who has just logged in. */
export interface IdToken {
  /** The stable identity to store: an address in canonical spelling. */
  user: Address;
  /** `sub` as received: `svcid:<address>`. */
  subject: string;
  /** Present when the person acted for a business (scope `business`). */
  business?: Business;
  claims: JWTPayload;
}

/** A genuine access token: on whose behalf your API is called, by which client, for what. */
export interface AccessToken extends IdToken {
  clientId: string;
  scope: string[];
}

/** Whose sessions end: that of the login `sid`, or all of `sub`. At least one is present. */
export interface LogoutToken {
  sub?: string;
  sid?: string;
  /**
   * Unix seconds: when it ended at the broker, however late the token arrives. A session of a login that the person
   * approved after this time (its claim `auth_time`) is a new one.
   */
  endedAt: number;
}

/** What you expect of an id token beyond its validity. */
export interface IdTokenChecks {
  /** Unix seconds. Default: the time of the SDK's own clock. */
  now?: number;
  /**
   * The nonce that `login.start` made. If absent it is not checked, as after a refresh (Core 1.0 section 12.2). Passing
   * undefined throws configuration_invalid, for this check and the next two.
   */
  nonce?: string;
  /** The access token that came along; `at_hash` must then be its hash. */
  accessToken?: string;
  /** The person must have approved at most this many seconds ago. */
  maxAgeSeconds?: number;
}

/** Verifies every token of one broker for one client. Nothing comes back unless all checks passed. */
export interface Tokens {
  /**
   * Verifies an id token in full (OpenID Connect Core 1.0 section 3.1.3.7).
   *
   * @throws {MerchantError} token_refused, its `reason` names the check; configuration_invalid; issuer_unreachable;
   * rate_limited; response_invalid; issuer_mismatch
   */
  idToken: (jwt: string, checks?: IdTokenChecks) => Promise<IdToken>;
  /**
   * Verifies an access token that came to your API as Bearer (RFC 9068 section 4). The API must name itself: a
   * token for another audience is refused. So are tokens without a person and tokens bound to a key (RFC 9449).
   *
   * @param checks `audience` is the API's own name; `now` in Unix seconds, by default the time of the SDK's own clock
   * @throws {MerchantError} token_refused, its `reason` names the check; configuration_invalid; issuer_unreachable;
   * rate_limited; response_invalid; issuer_mismatch
   */
  accessToken: (jwt: string, checks: { audience: string; now?: number }) => Promise<AccessToken>;
  /**
   * Verifies what the broker posts to `/backchannel-logout` (Back-Channel Logout 1.0 section 2.6). A repeated token
   * ends nothing new, so `jti` must be present but need not be remembered.
   *
   * @param checks `now` in Unix seconds, by default the time of the SDK's own clock
   * @throws {MerchantError} token_refused, its `reason` names the check; configuration_invalid; issuer_unreachable;
   * rate_limited; response_invalid; issuer_mismatch
   */
  logoutToken: (jwt: string, checks?: { now?: number }) => Promise<LogoutToken>;
}

export interface TokensContext {
  issuer: Issuer;
  issuerUrl: string;
  clientId: string;
  /** Unix seconds. */
  now: () => number;
}

export function openTokens(context: TokensContext): Tokens {
  return {
    idToken: (jwt, checks = {}) => verifyIdToken(context, jwt, checks),
    accessToken: (jwt, checks) => verifyAccessToken(context, jwt, checks),
    logoutToken: (jwt, checks) => verifyLogoutToken(context, jwt, checks?.now),
  };
}

async function verifyIdToken(
  context: TokensContext,
  jwt: string,
  checks: IdTokenChecks,
): Promise<IdToken> {
  const { nonce, accessToken, maxAgeSeconds } = checks;
  requireGiven(checks, ["nonce", "accessToken", "maxAgeSeconds"]);
  const now = readNow(checks.now ?? context.now());
  const claims = await verify(context, jwt, { typ: "JWT", audience: context.clientId, now });
  checkParty(claims, context.clientId);
  if (nonce !== undefined) check("nonce", equals(claims["nonce"], nonce));
  if (accessToken !== undefined) check("at_hash", equals(claims["at_hash"], halfHash(accessToken)));
  if (maxAgeSeconds !== undefined) checkAge(claims["auth_time"], now - maxAgeSeconds);
  return readIdentity(claims);
}

async function verifyAccessToken(
  context: TokensContext,
  jwt: string,
  checks: { audience: string; now?: number },
): Promise<AccessToken> {
  const { audience, now } = checks;
  // An API that forgot its own name would accept every client's tokens.
  if (!audience) throw misconfigured("audience");
  const claims = await verify(context, jwt, { typ: "at+jwt", audience, now });
  check("cnf", claims["cnf"] === undefined);
  const clientId = readText(claims, "client_id");
  return { ...readIdentity(claims), clientId, scope: readText(claims, "scope").split(" ") };
}

async function verifyLogoutToken(
  context: TokensContext,
  jwt: string,
  now: number | undefined,
): Promise<LogoutToken> {
  const claims = await verify(context, jwt, { typ: "logout+jwt", audience: context.clientId, now });
  // RFC 8417 section 2.2: `iat` is only when this token was made, which may be the last of several tries.
  const { sub, sid, jti, events, nonce, iat, toe = iat } = claims;
  check("events", isRecord(events) && isRecord(events[logoutEvent]));
  check("nonce", nonce === undefined);
  check("jti", typeof jti === "string" && jti !== "");
  check("sub", sub === undefined || (typeof sub === "string" && addressOfSubject(sub) !== null));
  check("sid", sid === undefined || (typeof sid === "string" && sid !== ""));
  check("sub", sub !== undefined || sid !== undefined);
  if (typeof toe !== "number") throw new MerchantError("token_refused", { reason: "toe" });
  return {
    ...(sub !== undefined && { sub }),
    ...(typeof sid === "string" && { sid }),
    endedAt: toe,
  };
}

/** What all three have in common: form, `typ`, `kid`, `alg`, signature, `iss`, `aud`, `exp`, `nbf`, `iat`. */
async function verify(
  context: TokensContext,
  jwt: string,
  expected: { typ: string; audience: string; now: number | undefined },
): Promise<JWTPayload> {
  const { typ, audience } = expected;
  const now = readNow(expected.now ?? context.now());
  checkHeader(jwt, typ);
  const { algorithms } = await context.issuer.discovery();
  try {
    const { payload } = await jwtVerify(jwt, context.issuer.key, {
      algorithms,
      issuer: context.issuerUrl,
      audience,
      currentDate: new Date(now * 1000),
      clockTolerance: toleranceSeconds,
      requiredClaims: ["exp", "iat"],
    });
    check("iat", typeof payload.iat === "number" && payload.iat <= now + toleranceSeconds);
    return payload;
  } catch (cause) {
    if (cause instanceof MerchantError) throw cause;
    // The cause would contain what the token says about the person.
    throw new MerchantError("token_refused", { reason: reasonOf(cause) });
  }
}

/** Checks the kind of the token before its key is looked up, so that a foreign token costs no request. */
function checkHeader(jwt: string, typ: string): void {
  const header = parseHeader(jwt);
  if (header === null) throw new MerchantError("token_refused", { reason: "form" });
  // The header is not authenticated yet, so `typ` may not even be a string.
  const given: unknown = header.typ;
  check("typ", typeof given === "string" && given.toLowerCase() === typ.toLowerCase());
  check("kid", typeof header.kid === "string" && header.kid !== "");
}

/** Core 1.0 section 3.1.3.7, rules 4 and 5: with several audiences, the token must say that it was issued to us. */
function checkParty(claims: JWTPayload, clientId: string): void {
  const azp = claims["azp"];
  const isShared = Array.isArray(claims.aud) && claims.aud.length > 1;
  check("azp", azp === undefined ? !isShared : azp === clientId);
}

function checkAge(authTime: unknown, earliest: number): void {
  check("auth_time", typeof authTime === "number" && authTime >= earliest - toleranceSeconds);
}

function readIdentity(claims: JWTPayload): IdToken {
  const subject = readText(claims, "sub");
  const user = addressOfSubject(subject);
  if (user === null) throw new MerchantError("token_refused", { reason: "sub" });
  const business = parseBusiness(claims["ext"]);
  return { user, subject, claims, ...(business !== null && { business }) };
}

function readText(claims: JWTPayload, name: string): string {
  const value = claims[name];
  if (typeof value !== "string") throw new MerchantError("token_refused", { reason: name });
  return value;
}

function check(reason: string, holds: boolean): void {
  if (!holds) throw new MerchantError("token_refused", { reason });
}

/** The left half of SHA-256, base64url: `at_hash` for RS256 and ES256 alike (Core 1.0 section 3.1.3.6). */
function halfHash(token: string): string {
  return sha256(token).subarray(0, 16).toString("base64url");
}

/** Compares in constant time; false if the received value is not a string. */
export function equals(received: unknown, expected: string): boolean {
  if (typeof received !== "string") return false;
  return timingSafeEqual(sha256(received), sha256(expected));
}

function sha256(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}

function reasonOf(error: unknown): string {
  if (error instanceof errors.JWTClaimValidationFailed || error instanceof errors.JWTExpired)
    return error.claim;
  if (error instanceof errors.JOSEAlgNotAllowed) return "alg";
  if (error instanceof errors.JWSSignatureVerificationFailed) return "signature";
  if (error instanceof errors.JWKSNoMatchingKey || error instanceof errors.JWKSMultipleMatchingKeys)
    return "kid";
  return "form";
}

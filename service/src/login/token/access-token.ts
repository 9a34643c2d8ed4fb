import { hash } from "node:crypto";
import { accessTokenTyp, isSignedWith, type JwtKey, signJwt } from "../keys/jwt.ts";
import { bytesOfFamilyId, familyIdOfBytes } from "./family-id.ts";
import type { TokenContext } from "../token-context.ts";

/** The claims of an access token (RFC 9068 section 2.2, decisions section 2). */
export interface AccessTokenClaims {
  readonly iss: string;
  /** `svcid:<address>`, or the client id for client_credentials. */
  readonly sub: string;
  readonly aud: readonly string[];
  readonly client_id: string;
  readonly scope: string;
  readonly scp: readonly string[];
  /** `<family>.<random>`: revoking a family revokes its access tokens. */
  readonly jti: string;
  readonly iat: number;
  readonly nbf: number;
  readonly exp: number;
  readonly ext: Readonly<Record<string, unknown>>;
  /** Thumbprint of the DPoP key that the token is bound to (RFC 9449 section 6.1). */
  readonly cnf?: { readonly jkt: string };
}

/** What an access token stands for. */
export interface AccessGrant {
  readonly familyId: string;
  readonly subject: string;
  readonly clientId: string;
  /** Empty: the client itself is the audience. */
  readonly audience: readonly string[];
  readonly scope: string;
  readonly ext: Readonly<Record<string, unknown>>;
  readonly jkt: string | null;
  readonly now: number;
  readonly expiresAt: number;
}

const jtiRandomBytes = 12;

export function signAccessToken(ctx: TokenContext, grant: AccessGrant): string {
  const family = bytesOfFamilyId(grant.familyId).toString("base64url");
  const claims: AccessTokenClaims = {
    iss: ctx.config.baseUrl,
    sub: grant.subject,
    aud: grant.audience.length === 0 ? [grant.clientId] : grant.audience,
    client_id: grant.clientId,
    scope: grant.scope,
    scp: grant.scope === "" ? [] : grant.scope.split(" "),
    jti: `${family}.${ctx.random.bytes(jtiRandomBytes).toString("base64url")}`,
    iat: grant.now,
    nbf: grant.now,
    exp: grant.expiresAt,
    ext: grant.ext,
    ...(grant.jkt === null ? {} : { cnf: { jkt: grant.jkt } }),
  };
  return signJwt(ctx.signingKeys.current("login-rs256"), accessTokenTyp, claims);
}

/**
 * Reads an access token that this installation signed, expired or not; null for anything else, another type of token
 * included. The header is compared as text with those of our keys, so no algorithm is ever taken from a token.
 */
export function readAccessToken(ctx: TokenContext, token: string): AccessTokenClaims | null {
  return readOwnJwt(ctx, token, accessTokenTyp) as AccessTokenClaims | null;
}

/** More than the longest id token has, business and nonce included. */
export const ownJwtLengthMax = 8192;

/** The claims of a token of this type that one of our live keys signed, or null. */
export function readOwnJwt(
  ctx: TokenContext,
  token: string,
  typ: string,
): Readonly<Record<string, unknown>> | null {
  if (token.length > ownJwtLengthMax || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(token)) return null;
  const header = token.slice(0, token.indexOf("."));
  const key: JwtKey | null = ctx.signingKeys.findByHeader(header, typ);
  if (key === null || !isKnownToBeSigned(key, token)) return null;
  const claims = token.slice(header.length + 1, token.lastIndexOf("."));
  return JSON.parse(Buffer.from(claims, "base64url").toString("utf8")) as Record<string, unknown>;
}

/** A hundred bytes each. */
const knownMax = 10_000;
const knownOfKey = new WeakMap<JwtKey, Set<string>>();

/** A signature that was good stays good, and one token is asked about again and again: RSA is done once for it. */
function isKnownToBeSigned(key: JwtKey, token: string): boolean {
  const digest = hash("sha256", token, "base64");
  const known = knownOfKey.get(key) ?? new Set<string>();
  if (known.has(digest)) return true;
  if (!isSignedWith(key, token)) return false;
  knownOfKey.set(key, known.add(digest));
  const [oldest] = known;
  if (known.size > knownMax && oldest !== undefined) known.delete(oldest);
  return true;
}

/** The family that an access token belongs to. */
export function familyOf(claims: AccessTokenClaims): string {
  return familyIdOfBytes(Buffer.from(claims.jti.slice(0, claims.jti.indexOf(".")), "base64url"));
}

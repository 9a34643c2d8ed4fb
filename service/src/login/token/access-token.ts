import { hash } from "node:crypto";
import { forgetOldest } from "../../platform/forget-oldest.ts";
import { accessTokenTyp, isSignedWith, type JwtKey, signJwt } from "../keys/jwt.ts";
import { bytesOfUuid, uuidOfBytes } from "../../platform/ids.ts";
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

/** The input of an access token. */
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
  const family = bytesOfUuid(grant.familyId).toString("base64url");
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

/** In characters; the longest id token, with business and nonce, has fewer. */
export const ownJwtLengthMax = 8192;

/** The claims of a token of this type that one of our live keys signed, or null. */
export function readOwnJwt(ctx: TokenContext, token: string, typ: string): Claims | null {
  if (token.length > ownJwtLengthMax) return null;
  const key: JwtKey | null = ctx.signingKeys.findByHeader(token.slice(0, token.indexOf(".")), typ);
  if (key === null) return null;
  const known = readOfKey.get(key) ?? new Map<string, Claims>();
  const digest = hash("sha256", token, "base64");
  const claims = known.get(digest) ?? readSigned(key, token);
  if (claims === null || known.has(digest)) return claims;
  readOfKey.set(key, known.set(digest, claims));
  forgetOldest(known, readMax);
  return claims;
}

type Claims = Readonly<Record<string, unknown>>;

/** How many tokens are remembered per key, about a kilobyte each. */
const readMax = 5_000;
/**
 * Claims of tokens that were verified, by key: a valid signature stays valid, and the same token is presented again and
 * again. Only what the token says is kept, never whether it still counts.
 */
const readOfKey = new WeakMap<JwtKey, Map<string, Claims>>();

function readSigned(key: JwtKey, token: string): Claims | null {
  const [, claims = ""] = /^[\w-]+\.([\w-]+)\.[\w-]+$/.exec(token) ?? [];
  if (claims === "" || !isSignedWith(key, token)) return null;
  const text = Buffer.from(claims, "base64url").toString("utf8");
  return JSON.parse(text, (_name, value: unknown) => Object.freeze(value)) as Claims;
}

/** The family that an access token belongs to. */
export function familyOf(claims: AccessTokenClaims): string {
  return uuidOfBytes(Buffer.from(claims.jti.slice(0, claims.jti.indexOf(".")), "base64url"));
}

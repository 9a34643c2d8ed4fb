import { databaseNowMs } from "../../platform/clock.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import { askedAudience, audiencesOf, lostAudienceFault } from "../authorization/audience.ts";
import { valueOf } from "../client/client-authentication.ts";
import { makeRefreshToken, parseRefreshToken, type RefreshToken } from "./refresh-token.ts";
import type { SealedCopies } from "./sealed-copies.ts";
import type { TokenContext } from "../token-context.ts";
import { getValue, refuseReplays, type TokenRequest, type TokenResponse } from "./token-request.ts";
import { issueTokens } from "./token-response.ts";
import * as store from "./token-store.ts";

/** What a refresh asks for, beside the token. */
interface Wish {
  readonly token: RefreshToken;
  /** Null: all that was granted. */
  readonly scopes: readonly string[] | null;
  readonly audience: readonly string[];
}

/**
 * Exchanges a refresh token for its successor and fresh tokens (RFC 6749 section 6, RFC 9700 section 4.14). The good
 * path is one statement. A repeat of the last token within the grace gets the same successor; any other genuine old
 * token revokes the family, whatever else the request asks.
 *
 * @throws {OAuthProblem}
 */
export async function refreshTokens(
  ctx: TokenContext,
  request: TokenRequest,
  copies: SealedCopies,
): Promise<TokenResponse> {
  const wish = readWish(ctx, request);
  const { token } = wish;
  const generation = token.generation + 1;
  const key = ctx.keys.hmac("refresh-token");
  const successor = makeRefreshToken(key, { id: token.familyId, generation }, ctx.random);
  const hasGrace = ctx.config.refreshGraceSeconds > 0;
  const rotatedAtMs = databaseNowMs(ctx.clock);
  const { row, spent } = await store.rotateRefreshToken(ctx.db, {
    familyId: token.familyId,
    clientId: request.client.id,
    oldSha256: token.sha256,
    newSha256: successor.sha256,
    generation,
    successorSealed: hasGrace ? copies.seal(token, successor) : null,
    scopes: wish.scopes,
    audience: wish.audience,
    clientAudiences: audiencesOf(request.client),
    dpopJkt: request.dpopJkt,
    mayChangeKey: request.isConfidential,
    oneTime: request.oneTime,
    now: request.now,
    rotatedAtMs,
    refreshIdleSeconds: ctx.config.refreshIdleSeconds,
  });
  if (row === null) {
    refuseReplays(request, spent);
    return repeatOrRefuse(ctx, request, { wish, copies });
  }
  if (hasGrace) copies.note(token.familyId, rotatedAtMs);
  return issue(ctx, request, { wish, family: row, refreshToken: successor.text });
}

function readWish(ctx: TokenContext, { form }: TokenRequest): Wish {
  const text = getValue(form, "refresh_token");
  const token = parseRefreshToken(ctx.keys.hmac("refresh-token"), text);
  if (token === null) throw grantFault("the refresh token is unknown");
  const scope = valueOf(form, "scope");
  const scopes =
    scope === undefined ? null : [...new Set(scope.split(" "))].filter((each) => each !== "");
  if (scopes?.length === 0) throw new OAuthProblem("invalid_scope", "scope names nothing");
  return { token, scopes, audience: askedAudience(form) };
}

/** A narrower scope holds for the access token alone; the family keeps what it has. */
function issue(
  ctx: TokenContext,
  request: TokenRequest,
  made: { wish: Wish; family: store.FamilyRow; refreshToken: string },
): TokenResponse {
  const scope = made.wish.scopes?.join(" ") ?? made.family.scope;
  return issueTokens(ctx, request, {
    familyId: made.wish.token.familyId,
    family: made.family,
    scope,
    refreshToken: made.refreshToken,
  });
}

function grantFault(description: string): OAuthProblem {
  return new OAuthProblem("invalid_grant", description);
}

/** What a check looks at. */
interface Asked {
  readonly family: store.RefreshRow;
  readonly request: TokenRequest;
  readonly wish: Wish;
}

type Check = (asked: Asked) => OAuthProblem | null;

const checkClient: Check = ({ family, request }) =>
  family.clientId === request.client.id ? null : grantFault("the refresh token is unknown");

const checkLife: Check = ({ family, request }) => {
  if (family.revokedAt !== null) return grantFault("the refresh token was revoked");
  if (family.business !== null && family.seat === null)
    return grantFault("the user may not act for the business any more");
  const isOver = family.expiresAt <= request.now || (family.refreshExpiresAt ?? 0) <= request.now;
  return isOver ? grantFault("the refresh token has expired") : null;
};

const checkDpopKey: Check = ({ family, request }) => {
  const { dpopJkt, isConfidential } = request;
  if (family.dpopJkt === null || family.dpopJkt === dpopJkt) return null;
  if (dpopJkt === null) return grantFault("the refresh token needs a DPoP proof");
  return isConfidential ? null : grantFault("the refresh token is bound to another DPoP key");
};

const checkScope: Check = ({ family, wish }) => {
  const granted = family.scope.split(" ");
  const isNarrower = wish.scopes === null || wish.scopes.every((scope) => granted.includes(scope));
  return isNarrower
    ? null
    : new OAuthProblem("invalid_scope", "scope may be narrowed, never widened");
};

const checkAudience: Check = ({ family, request, wish }) => {
  if (!wish.audience.every((audience) => family.audience.includes(audience)))
    return new OAuthProblem("invalid_target", "this audience was not granted with the login");
  return lostAudienceFault(family.audience, request.client);
};

/** Why a refresh is refused whatever its token's age: the first that does not hold. */
const checks: readonly Check[] = [checkClient, checkLife];
/** Likewise, what it asks for with the newest token, or with a repeat of the last. */
const wishChecks: readonly Check[] = [checkDpopKey, checkScope, checkAudience];

function refuseFaulty(asked: Asked, by: readonly Check[]): void {
  for (const check of by) {
    const fault = check(asked);
    if (fault !== null) throw fault;
  }
}

async function repeatOrRefuse(
  ctx: TokenContext,
  request: TokenRequest,
  { wish, copies }: { wish: Wish; copies: SealedCopies },
): Promise<TokenResponse> {
  const family = await store.findRefresh(ctx.db, wish.token.familyId);
  if (family === null) throw grantFault("the refresh token is unknown");
  const asked = { family, request, wish };
  refuseFaulty(asked, checks);
  const isNewest =
    family.refreshSha256 !== null && equalBytes(family.refreshSha256, wish.token.sha256);
  const isRepeated = isRepeat(family, wish.token, {
    request,
    nowMs: databaseNowMs(ctx.clock),
    graceMs: ctx.config.refreshGraceSeconds * 1000,
  });
  // A thief who was faster chose the key that the family is bound to: it must not hide that two hold its tokens.
  if (isNewest || isRepeated) refuseFaulty(asked, wishChecks);
  if (isNewest) throw new Error("the newest refresh token of a family was refused for no reason");
  const successor = isRepeated ? copies.open(wish.token, family.successorSealed) : null;
  if (successor !== null) return issue(ctx, request, { wish, family, refreshToken: successor });
  // Its mac proves that it is one of ours, and it is not the newest: two parties hold tokens of this family.
  ctx.log.warn(
    { clientId: family.clientId },
    "a refresh token was used twice; its family is revoked",
  );
  await store.revokeFamily(ctx.db, wish.token.familyId, { reason: "reuse", now: request.now });
  throw grantFault("the refresh token was used before; the login is revoked");
}

/** Whether this is the token that was replaced last, a moment ago, with the same key. */
function isRepeat(
  family: store.RefreshRow,
  token: RefreshToken,
  { request, nowMs, graceMs }: { request: TokenRequest; nowMs: number; graceMs: number },
): boolean {
  if (family.previousSha256 === null || family.rotatedAtMs === null) return false;
  const isLast = equalBytes(family.previousSha256, token.sha256);
  const isRecent = nowMs - family.rotatedAtMs < graceMs;
  return isLast && isRecent && family.dpopJkt === request.dpopJkt;
}

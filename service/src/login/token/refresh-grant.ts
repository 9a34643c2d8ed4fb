import { databaseNowMs } from "../../platform/clock.ts";
import { valueOf } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { askedAudience, audiencesOf, lostAudienceFault } from "../authorization/audience.ts";
import { judgeRefreshUse } from "./refresh-reuse.ts";
import { makeRefreshToken, parseRefreshToken, type RefreshToken } from "./refresh-token.ts";
import type { TokenContext } from "../token-context.ts";
import {
  getValue,
  grantFault,
  refuseReplays,
  type TokenRequest,
  type TokenResponse,
} from "./token-request.ts";
import { issueTokens } from "./token-response.ts";
import * as store from "./token-store.ts";

/** The input of a refresh. */
interface Presented {
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
): Promise<TokenResponse> {
  const presented = readPresented(ctx, request);
  const { token } = presented;
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
    successorSealed: hasGrace ? ctx.successors.seal(token, successor) : null,
    scopes: presented.scopes,
    audience: presented.audience,
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
    return repeatOrRefuse(ctx, request, presented);
  }
  if (hasGrace) ctx.successors.note(token.familyId, rotatedAtMs);
  return issue(ctx, request, { presented, family: row, refreshToken: successor.text });
}

function readPresented(ctx: TokenContext, { form }: TokenRequest): Presented {
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
  made: { presented: Presented; family: store.FamilyRow; refreshToken: string },
): TokenResponse {
  const scope = made.presented.scopes?.join(" ") ?? made.family.scope;
  return issueTokens(ctx, request, {
    familyId: made.presented.token.familyId,
    family: made.family,
    scope,
    refreshToken: made.refreshToken,
  });
}

/** The input of a check. */
interface Asked {
  readonly family: store.RefreshRow;
  readonly request: TokenRequest;
  readonly presented: Presented;
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

const checkScope: Check = ({ family, presented }) => {
  const granted = family.scope.split(" ");
  const isNarrower =
    presented.scopes === null || presented.scopes.every((scope) => granted.includes(scope));
  return isNarrower
    ? null
    : new OAuthProblem("invalid_scope", "scope may be narrowed, never widened");
};

const checkAudience: Check = ({ family, request, presented }) => {
  if (!presented.audience.every((audience) => family.audience.includes(audience)))
    return new OAuthProblem("invalid_target", "this audience was not granted with the login");
  return lostAudienceFault(family.audience, request.client);
};

/** Checked for any genuine token, however old; the first fault is the answer. */
const checks: readonly Check[] = [checkClient, checkLife];
/** Checked in addition for the newest token, and for a repeat of the one before. */
const presentedChecks: readonly Check[] = [checkDpopKey, checkScope, checkAudience];

function refuseFaulty(asked: Asked, by: readonly Check[]): void {
  for (const check of by) {
    const fault = check(asked);
    if (fault !== null) throw fault;
  }
}

async function repeatOrRefuse(
  ctx: TokenContext,
  request: TokenRequest,
  presented: Presented,
): Promise<TokenResponse> {
  const family = await store.findRefresh(ctx.db, presented.token.familyId);
  if (family === null) throw grantFault("the refresh token is unknown");
  const asked = { family, request, presented };
  refuseFaulty(asked, checks);
  const use = judgeRefreshUse(family, presented.token, {
    dpopJkt: request.dpopJkt,
    nowMs: databaseNowMs(ctx.clock),
    graceMs: ctx.config.refreshGraceSeconds * 1000,
  });
  // A reused token skips these: a thief who refreshed first may have bound the family to another key, and a fault of
  // the key must not hide the reuse.
  if (use !== "reused") refuseFaulty(asked, presentedChecks);
  if (use === "newest")
    throw new Error("the newest refresh token of a family was refused for no reason");
  const successor =
    use === "repeated" ? ctx.successors.open(presented.token, family.successorSealed) : null;
  if (successor !== null)
    return issue(ctx, request, { presented, family, refreshToken: successor });
  // Its mac proves that it is genuine, and it is not the newest: two parties hold tokens of this family.
  ctx.log.warn(
    { clientId: family.clientId },
    "a refresh token was used twice; its family is revoked",
  );
  await store.revokeFamily(ctx.db, presented.token.familyId, { reason: "reuse", now: request.now });
  throw grantFault("the refresh token was used before; the login is revoked");
}

import type { Client } from "../../accounts/index.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { uuidv7 } from "../../platform/ids.ts";
import { valueOf } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { askedAudience, audiencesOf, lostAudienceFault } from "../authorization/audience.ts";
import { businessFamilySeconds } from "../business/business-login.ts";
import { makeRefreshToken } from "./refresh-token.ts";
import type { TokenContext } from "../token-context.ts";
import {
  getValue,
  grantFault,
  refuseReplays,
  type TokenRequest,
  type TokenResponse,
} from "./token-request.ts";
import { type AuthorizationCode, codeOf } from "./authorization-code.ts";
import { issueTokens } from "./token-response.ts";
import * as store from "./token-store.ts";

/** The input that the client presents to redeem a code, after the checks that need no database. */
interface Presented {
  readonly code: AuthorizationCode;
  readonly redirectUri: string;
  readonly codeChallenge: string | null;
  readonly audience: readonly string[];
}

/**
 * Redeems an authorization code (RFC 6749 section 4.1.3, RFC 7636 section 4.5). The good path is one statement; only
 * when it finds nothing, a second one finds out why.
 *
 * @throws {OAuthProblem}
 */
export async function redeemCode(ctx: TokenContext, request: TokenRequest): Promise<TokenResponse> {
  const presented = await readPresented(ctx, request);
  const familyId = uuidv7(ctx.clock, ctx.random);
  const refresh = makeRefreshToken(
    ctx.keys.hmac("refresh-token"),
    { id: familyId, generation: 0 },
    ctx.random,
  );
  const { row, spent } = await store.redeemCode(ctx.db, {
    ...presented,
    clientId: request.client.id,
    clientAudiences: audiencesOf(request.client),
    dpopJkt: request.dpopJkt,
    oneTime: request.oneTime,
    familyId,
    refreshSha256: refresh.sha256,
    now: request.now,
    accessSeconds: ctx.config.accessTokenLifetimeSeconds,
    refreshIdleSeconds: ctx.config.refreshIdleSeconds,
    refreshAbsoluteSeconds: ctx.config.refreshAbsoluteSeconds,
    businessAbsoluteSeconds: businessFamilySeconds,
  });
  if (row === null) {
    refuseReplays(request, spent);
    return explain(ctx, request, presented);
  }
  return issueTokens(ctx, request, {
    familyId,
    family: row,
    scope: row.scope,
    refreshToken: row.hasRefresh ? refresh.text : null,
    ...(row.nonce === null ? {} : { nonce: row.nonce }),
  });
}

/** RFC 7636 section 4.1. */
const verifierPattern = /^[A-Za-z0-9._~-]{43,128}$/;

async function readPresented(
  { clients }: Pick<TokenContext, "clients">,
  { client, form }: TokenRequest,
): Promise<Presented> {
  const code = getValue(form, "code");
  const redirectUri = getValue(form, "redirect_uri");
  const isRegistered = ({ redirectUris }: Client): boolean => redirectUris.includes(redirectUri);
  if ((await clients.findFitting(client, isRegistered)) === null)
    throw grantFault("redirect_uri is none of the client's");
  const verifier = valueOf(form, "code_verifier");
  if (verifier !== undefined && !verifierPattern.test(verifier))
    throw new OAuthProblem(
      "invalid_request",
      "code_verifier must be 43 to 128 unreserved characters",
    );
  return {
    code: codeOf(code),
    redirectUri,
    codeChallenge: verifier === undefined ? null : sha256(verifier).toString("base64url"),
    audience: askedAudience(form),
  };
}

/** The code as issued, and the request for it. */
interface Asked {
  readonly code: store.CodeRow;
  readonly request: TokenRequest;
  readonly presented: Presented;
}

type Check = (asked: Asked) => OAuthProblem | null;

const checkClient: Check = ({ code, request }) =>
  code.clientId === request.client.id ? null : grantFault("the code is unknown");

const checkVerifier: Check = ({ code, presented }) => {
  if (code.codeChallenge === presented.codeChallenge) return null;
  if (code.codeChallenge === null)
    return grantFault("code_verifier was sent, but the login was started without a code_challenge");
  if (presented.codeChallenge === null) return grantFault("code_verifier is missing");
  return grantFault("code_verifier does not fit the code_challenge");
};

const checkRedirectUri: Check = ({ code, presented }) =>
  code.redirectUri === presented.redirectUri
    ? null
    : grantFault("redirect_uri is not that of the authorization request");

const checkDpopKey: Check = ({ code, request }) =>
  code.dpopJkt === null || code.dpopJkt === request.dpopJkt
    ? null
    : grantFault("the DPoP key is not the one that the login was bound to");

/** After client and verifier are checked: nobody else may end a login by presenting a code that was seen somewhere. */
const checkReuse: Check = ({ code }) =>
  code.familyId === null
    ? null
    : grantFault("the code was redeemed before; its tokens are revoked");

const checkExpiry: Check = ({ code, request }) =>
  code.expiresAt > request.now ? null : grantFault("the code has expired");

const checkAudience: Check = ({ code, request, presented }) => {
  if (!presented.audience.every((audience) => code.audience.includes(audience)))
    return new OAuthProblem("invalid_target", "this audience was not granted with the code");
  return lostAudienceFault(code.audience, request.client);
};

/** Why a code is refused: the first that does not hold. */
const checks: readonly Check[] = [
  checkClient,
  checkVerifier,
  checkRedirectUri,
  checkDpopKey,
  checkReuse,
  checkExpiry,
  checkAudience,
];

async function explain(
  ctx: TokenContext,
  request: TokenRequest,
  presented: Presented,
): Promise<never> {
  const code = await store.findCode(ctx.db, presented.code);
  if (code === null) throw grantFault("the code is unknown");
  for (const check of checks) {
    const fault = check({ code, request, presented });
    if (fault === null) continue;
    if (check === checkReuse && code.familyId !== null) {
      ctx.log.warn(
        { clientId: code.clientId },
        "a code was redeemed twice; its tokens are revoked",
      );
      const revocation = { reason: "code_reuse", now: request.now } as const;
      await store.revokeFamily(ctx.db, code.familyId, revocation);
    }
    throw fault;
  }
  throw grantFault("the session or the place in the business that the code belongs to has ended");
}

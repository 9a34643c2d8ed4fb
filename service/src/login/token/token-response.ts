import { subjectOf } from "@svc/protocol";
import { signAccessToken } from "./access-token.ts";
import { extOf } from "../business/business-claims.ts";
import { signIdToken } from "./id-token.ts";
import type { TokenContext } from "../token-context.ts";
import type { TokenRequest, TokenResponse } from "./token-request.ts";
import type { FamilyRow } from "./token-store.ts";

/** A family of a user, and what this answer adds to it. */
export interface Issue {
  readonly familyId: string;
  readonly family: FamilyRow;
  /** Of this answer; part of what the family has. */
  readonly scope: string;
  /** Null when none is given. */
  readonly refreshToken: string | null;
  /** Of the authorization request; only its own id token repeats it (OpenID Connect Core section 12.2). */
  readonly nonce?: string;
}

/** Makes the tokens of a user: access token, id token with `openid`, refresh token as given. */
export function issueTokens(
  ctx: TokenContext,
  request: TokenRequest,
  { familyId, family, scope, refreshToken, nonce }: Issue,
): TokenResponse {
  if (family.userAddress === null) throw new Error("a family of a user has no user");
  const { client, dpopJkt: jkt, now } = request;
  const subject = subjectOf(family.userAddress);
  const expiresAt = Math.min(now + ctx.config.accessTokenLifetimeSeconds, family.expiresAt);
  const ext = extOf(ctx, family, scope);
  const accessToken = signAccessToken(ctx, {
    familyId,
    subject,
    clientId: client.id,
    audience: family.audience,
    scope,
    ext,
    jkt,
    now,
    expiresAt,
  });
  const idToken = scope.split(" ").includes("openid")
    ? signIdToken(ctx, {
        client,
        subject,
        accessToken,
        sessionId: family.sessionId,
        acr: family.acr,
        authenticatedAt: family.authenticatedAt,
        ...(nonce === undefined ? {} : { nonce }),
        ext,
        now,
        expiresAt,
      })
    : null;
  return {
    access_token: accessToken,
    token_type: jkt === null ? "bearer" : "DPoP",
    expires_in: expiresAt - now,
    scope,
    ...(idToken === null ? {} : { id_token: idToken }),
    ...(refreshToken === null ? {} : { refresh_token: refreshToken }),
  };
}

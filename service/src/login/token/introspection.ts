import { subjectOf } from "@svc/protocol";
import type { Client } from "../../accounts/index.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { type AccessTokenClaims, familyOf, readAccessToken } from "./access-token.ts";
import {
  authenticateClient,
  type ClientCall,
  refuseReplayedAssertion,
  spendAssertion,
} from "../client/client-authentication.ts";
import { extOf } from "../business/business-claims.ts";
import { readLiveClaims } from "./live-claims.ts";
import { parseRefreshToken } from "./refresh-token.ts";
import type { TokenContext } from "../token-context.ts";
import { getValue } from "./token-request.ts";
import * as store from "./token-store.ts";
import type { OneTimeValue } from "./used-once-store.ts";

/** The answer about a token (RFC 7662 section 2.2). */
export type Introspection =
  | { readonly active: false }
  | {
      readonly active: true;
      readonly iss: string;
      readonly sub: string;
      readonly aud: readonly string[];
      readonly client_id: string;
      readonly scope: string;
      readonly iat: number;
      readonly exp: number;
      readonly token_use: "access_token" | "refresh_token";
      readonly token_type?: "bearer" | "DPoP";
      readonly nbf?: number;
      readonly jti?: string;
      readonly cnf?: { readonly jkt: string };
      readonly ext?: Readonly<Record<string, unknown>>;
    };

const inactive: Introspection = { active: false };

/**
 * Tells a confidential client whether a token is good. It learns only about its own tokens and access tokens for its
 * own audiences; any other is inactive, just like one that never existed.
 *
 * @throws {OAuthProblem} | {Problem}
 */
export async function introspect(ctx: TokenContext, call: ClientCall): Promise<Introspection> {
  const { client, isConfidential, oneTime } = await authenticateClient(ctx, call);
  if (!isConfidential)
    throw new OAuthProblem("invalid_client", "introspection is for clients with a secret or key");
  const text = getValue(call.form, "token");
  const access = readAccessToken(ctx, text);
  if (access !== null) return introspectAccess(ctx, access, { client, oneTime });
  await spendAssertion(ctx, oneTime);
  return introspectRefresh(ctx, text, client);
}

interface Caller {
  readonly client: Client;
  readonly oneTime: readonly OneTimeValue[];
}

async function introspectAccess(
  ctx: TokenContext,
  token: AccessTokenClaims,
  { client, oneTime }: Caller,
): Promise<Introspection> {
  const now = ctx.clock.now();
  const isMeant = ({ id, audiences }: Client): boolean =>
    token.client_id === id ||
    token.aud.some((audience) => audience === id || audiences.includes(audience));
  const isKnown =
    token.exp > now &&
    (await ctx.clients.findFitting(client, isMeant)) !== null &&
    (await ctx.clients.find(token.client_id)) !== null;
  if (!isKnown) {
    await spendAssertion(ctx, oneTime);
    return inactive;
  }
  const given = { now, oneTime, refuseReplay: refuseReplayedAssertion };
  const live = await readLiveClaims(ctx, familyOf(token), given);
  if (live === null) return inactive;
  return {
    active: true,
    ...token,
    ext: extOf(ctx, live, token.scope),
    token_type: token.cnf === undefined ? "bearer" : "DPoP",
    token_use: "access_token",
  };
}

async function introspectRefresh(
  ctx: TokenContext,
  text: string,
  client: Client,
): Promise<Introspection> {
  const token = parseRefreshToken(ctx.keys.hmac("refresh-token"), text);
  const family = token === null ? null : await store.findRefresh(ctx.db, token.familyId);
  if (token === null || family?.clientId !== client.id || family.userAddress === null)
    return inactive;
  const now = ctx.clock.now();
  const expiresAt = Math.min(family.refreshExpiresAt ?? 0, family.expiresAt);
  const isNewest = family.refreshSha256?.equals(token.sha256) === true;
  const isActing = family.business === null || family.seat !== null;
  if (!isNewest || !isActing || family.revokedAt !== null || expiresAt <= now) return inactive;
  return {
    active: true,
    iss: ctx.config.baseUrl,
    sub: subjectOf(family.userAddress),
    aud: family.audience.length === 0 ? [client.id] : family.audience,
    client_id: client.id,
    scope: family.scope,
    iat: family.rotatedAtMs === null ? family.createdAt : Math.floor(family.rotatedAtMs / 1000),
    exp: expiresAt,
    token_use: "refresh_token",
  };
}

import { OAuthProblem } from "../../platform/http/problems.ts";
import { grantToClient } from "./client-credentials-grant.ts";
import { redeemCode } from "./code-grant.ts";
import { refreshTokens } from "./refresh-grant.ts";
import type { TokenContext } from "../token-context.ts";
import {
  getValue,
  readTokenRequest,
  type TokenCall,
  type TokenRequest,
  type TokenResponse,
} from "./token-request.ts";

type Grant = (ctx: TokenContext, request: TokenRequest) => Promise<TokenResponse>;

/** Every grant there is (decisions section 2, Grants); each is a list of checks of its own. */
const grants: ReadonlyMap<string, Grant> = new Map<string, Grant>([
  ["authorization_code", redeemCode],
  ["refresh_token", refreshTokens],
  ["client_credentials", grantToClient],
]);

export const grantTypes: readonly string[] = [...grants.keys()];

/**
 * Answers a call to the token endpoint: who calls, with which key, for which grant. The good path of every grant is
 * one database call.
 *
 * @throws {OAuthProblem} | {Problem}
 */
export async function answerTokenCall(ctx: TokenContext, call: TokenCall): Promise<TokenResponse> {
  const request = await readTokenRequest(ctx, call);
  const grant = grants.get(getValue(call.form, "grant_type"));
  if (grant === undefined)
    throw new OAuthProblem(
      "unsupported_grant_type",
      `grant_type must be one of ${grantTypes.join(", ")}`,
    );
  return grant(ctx, request);
}

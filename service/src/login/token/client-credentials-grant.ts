import { uuidv7 } from "../../platform/ids.ts";
import { valueOf } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { signAccessToken } from "./access-token.ts";
import { resolveAudience } from "../authorization/audience.ts";
import type { TokenContext } from "../token-context.ts";
import { refuseReplays, type TokenRequest, type TokenResponse } from "./token-request.ts";
import * as store from "./token-store.ts";

type Check = (request: TokenRequest) => void;

const checkConfidential: Check = ({ isConfidential }) => {
  if (!isConfidential)
    throw new OAuthProblem(
      "unauthorized_client",
      "a client without a secret or key acts for users alone",
    );
};

/** Every scope that exists speaks about a user. */
const checkScope: Check = ({ form }) => {
  if (valueOf(form, "scope") !== undefined)
    throw new OAuthProblem("invalid_scope", "client_credentials takes no scope");
};

const checks: readonly Check[] = [checkConfidential, checkScope];

/**
 * Issues an access token to the client itself (RFC 6749 section 4.4): `sub` is the client id, `/userinfo` refuses it.
 *
 * @throws {OAuthProblem}
 */
export async function grantToClient(
  ctx: TokenContext,
  request: TokenRequest,
): Promise<TokenResponse> {
  for (const check of checks) check(request);
  const { client, dpopJkt, now, oneTime } = request;
  const audience = resolveAudience(request.form, client);
  const familyId = uuidv7(ctx.clock, ctx.random);
  const expiresAt = now + ctx.config.accessTokenLifetimeSeconds;
  const family = { id: familyId, clientId: client.id, audience, dpopJkt, now, expiresAt, oneTime };
  refuseReplays(request, await store.insertMachineFamily(ctx.db, family));
  const accessToken = signAccessToken(ctx, {
    familyId,
    subject: client.id,
    clientId: client.id,
    audience,
    scope: "",
    ext: {},
    jkt: dpopJkt,
    now,
    expiresAt,
  });
  return {
    access_token: accessToken,
    token_type: dpopJkt === null ? "bearer" : "DPoP",
    expires_in: expiresAt - now,
    scope: "",
  };
}

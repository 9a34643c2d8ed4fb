import { REQUEST_OBJECT_TYP, organizationIdentity, type RequestObject } from "@svc/protocol";
import type { Acr, Client } from "../../accounts/index.ts";
import type { Attempt } from "./attempt.ts";
import { signJwt } from "../keys/jwt.ts";
import { validUntilOf } from "../business/business-login.ts";
import type { LoginContext } from "../login-context.ts";
import { isBusinessScope } from "../authorization/scope.ts";

export interface RequestObjectInput {
  readonly attempt: Attempt;
  readonly client: Client;
  readonly sessionText: string;
  readonly acr: Acr;
  readonly numberMatching: boolean;
}

/**
 * The answer to a claim: says who asks, signed by this broker (decisions section 3). `acr` tells the wallet whether it
 * and the browser are near each other, `number_matching` whether to ask for the digits.
 */
export function signLoginObject(
  ctx: LoginContext,
  { attempt, client, sessionText, acr, numberMatching }: RequestObjectInput,
): string {
  const claims: RequestObject = {
    iss: ctx.config.baseUrl,
    aud: "svc-wallet",
    action: "login",
    sess: sessionText,
    client_name: client.name,
    domain: client.domain ?? "",
    from: organizationIdentity(client.organizationId),
    required: [],
    optional: [],
    redirect_host: hostOf(attempt.request.redirectUri),
    scopes: attempt.request.scope.split(" "),
    acr,
    number_matching: numberMatching,
    client_id: client.id,
    ...(isBusinessScope(attempt.request.scope) ? { valid_until: validUntilOf(attempt) } : {}),
    iat: ctx.clock.now(),
    exp: attempt.expiresAt,
  };
  return signRequestObject(ctx, claims);
}

/**
 * The terms that the claiming wallet was told in the request object. They stay in force: later changes of the client
 * only affect later logins.
 */
export function claimTermsOf({ requestObject }: Pick<Attempt, "requestObject">): {
  requester: string;
  numberMatching: boolean;
} {
  const [, segment = ""] = requestObject?.split(".") ?? [];
  const claims = JSON.parse(Buffer.from(segment, "base64url").toString()) as RequestObject;
  return { requester: claims.domain, numberMatching: claims.number_matching === true };
}

/** Signs a request object with the key by which wallets know this broker. Other slices get it as a function. */
export function signRequestObject(
  ctx: Pick<LoginContext, "signingKeys">,
  claims: RequestObject,
): string {
  return signJwt(ctx.signingKeys.current("wallet-es256"), REQUEST_OBJECT_TYP, claims);
}

/** Host with port of a web redirect, or the scheme of a native app's. */
function hostOf(redirectUri: string): string {
  const url = new URL(redirectUri);
  return url.host === "" ? url.protocol : url.host;
}

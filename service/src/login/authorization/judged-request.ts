import type { Client } from "../../accounts/index.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import type { LoginContext } from "../login-context.ts";
import {
  type AuthorizationRequest,
  checkAuthorizationRequest,
  firstValueOf,
  getRedirectUri,
} from "./authorization-request.ts";
import { userOfIdToken } from "./id-token-hint.ts";

/** A request that may be answered, or its fault. Without a redirect URI, only the caller may be told of the fault. */
export type JudgedRequest =
  | {
      readonly client: Client;
      readonly redirectUri: string;
      readonly request: AuthorizationRequest;
    }
  | { readonly redirectUri: string | null; readonly fault: OAuthProblem };

/** The parameters of a request, whether sent with it or pushed. */
interface Asked {
  readonly given: Form;
  readonly isPushed: boolean;
}

/**
 * Judges a request in full. If the client as remembered would be refused, the client as stored decides: news of its new
 * settings may not have arrived here yet.
 */
export async function judgeRequest(
  ctx: LoginContext,
  remembered: Client,
  asked: Asked,
): Promise<JudgedRequest> {
  const judged = judgeFor(ctx, remembered, asked);
  if (!("fault" in judged)) return judged;
  const client = await ctx.clients.findAnew(remembered.id);
  return client === null ? judged : judgeFor(ctx, client, asked);
}

function judgeFor(ctx: LoginContext, client: Client, { given, isPushed }: Asked): JudgedRequest {
  let redirectUri: string | null = null;
  try {
    redirectUri = getRedirectUri(given, client);
    refuseUnfetched(given);
    const request = checkAuthorizationRequest(given, redirectUri, {
      client,
      isPushed,
      userOfIdToken: (token) => userOfIdToken(ctx, token, client.id),
    });
    return { client, redirectUri, request };
  } catch (error) {
    if (!(error instanceof OAuthProblem)) throw error;
    return { redirectUri, fault: error };
  }
}

/**
 * A pushed request has been resolved by now; any other `request_uri` would have to be fetched (OpenID Connect Core
 * section 6.2).
 */
function refuseUnfetched(given: Form): void {
  if (firstValueOf(given, "request_uri") === undefined) return;
  const message = "no request_uri but that of a pushed request is supported";
  throw new OAuthProblem("request_uri_not_supported", message);
}

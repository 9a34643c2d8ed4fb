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

/** A request that may be answered, or its fault; without a redirect URI there is nobody but the caller to tell it to. */
export type JudgedRequest =
  | {
      readonly client: Client;
      readonly redirectUri: string;
      readonly request: AuthorizationRequest;
    }
  | { readonly redirectUri: string | null; readonly fault: OAuthProblem };

/** The parameters of a request, its own or those that were pushed. */
interface Asked {
  readonly given: Form;
  readonly isPushed: boolean;
}

/**
 * Judges a request in full. What is refused by what is remembered of the client may be good by what it is now, and a
 * request that was pushed cannot be used again.
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

/** What was pushed is here by now; anything else would have to be fetched (OpenID Connect Core section 6.2). */
function refuseUnfetched(given: Form): void {
  if (firstValueOf(given, "request_uri") === undefined) return;
  const message = "no request_uri but that of a pushed request is supported";
  throw new OAuthProblem("request_uri_not_supported", message);
}

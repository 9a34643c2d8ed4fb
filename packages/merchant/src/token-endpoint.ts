import { explanationOf } from "./answer.ts";
import { invalid, openAnswer } from "./api-answer.ts";
import { oauthError } from "./callback.ts";
import { callIssuer, type IssuerAnswer, type IssuerCall } from "./issuer-call.ts";
import type { Issuer } from "./issuer.ts";
import { MerchantError } from "./merchant-error.ts";

/** The client, and how it reaches its broker. */
export interface TokenEndpointContext {
  issuer: Issuer;
  clientId: string;
  clientSecret: string | undefined;
  fetch: typeof fetch;
  now: () => number;
}

/** The members of a form or query; undefined ones are left out. */
export type Form = Record<string, string | undefined>;

/**
 * For ten seconds the broker repeats its answer to the same refresh token; a later repeat counts as theft and ends the
 * login. So a second try starts within 5 seconds or not at all, and ends after 4 more.
 */
const refreshPatience = { timeoutMs: 4_000, repeatWithinMs: 5_000 };

/** The tokens as they came: the id token is not verified yet. */
export interface TokenResponse {
  idToken: string;
  accessToken: string;
  refreshToken?: string;
  expiresAt: number;
}

/**
 * Redeems a grant (RFC 6749 sections 4.1.3 and 6).
 *
 * @throws {MerchantError} grant_refused, client_refused, request_refused, response_invalid, issuer_unreachable,
 * rate_limited, issuer_mismatch
 */
export async function requestTokens(
  context: TokenEndpointContext,
  grant: Form,
): Promise<TokenResponse> {
  const { tokenEndpoint } = await context.issuer.discovery();
  // The keys come first: a grant can be redeemed only once, so failing to get the keys afterwards would cost the login.
  await context.issuer.prepare();
  const patience = grant["grant_type"] === "refresh_token" ? refreshPatience : {};
  const answer = await postForm(context, grant, { url: tokenEndpoint, ...patience });
  if (answer.status !== 200) throw refusalOf(answer);
  return parseTokenResponse(answer.body, context.now());
}

/** The client's credentials go in HTTP Basic; a browser-only client names itself and proves itself by PKCE. */
export function postForm(
  context: TokenEndpointContext,
  members: Form,
  call: Omit<IssuerCall, "form" | "headers">,
): Promise<IssuerAnswer> {
  const { clientId, clientSecret } = context;
  if (clientSecret === undefined) {
    return callIssuer(context.fetch, {
      ...call,
      form: formOf({ ...members, client_id: clientId }),
    });
  }
  // RFC 6749 section 2.3.1: both parts are form-encoded first.
  const credentials = `${formEncode(clientId)}:${formEncode(clientSecret)}`;
  const headers = { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
  return callIssuer(context.fetch, { ...call, form: formOf(members), headers });
}

/** What an error answer of the broker means (RFC 6749 section 5.2). */
export function refusalOf(answer: IssuerAnswer): MerchantError {
  const reason = oauthError(answer.body?.["error"]);
  if (reason === undefined) return new MerchantError("response_invalid");
  const options = { reason, explanation: explanationOf(answer.body?.["error_description"]) };
  if (reason === "invalid_grant") return new MerchantError("grant_refused", options);
  if (reason === "invalid_client") return new MerchantError("client_refused", options);
  return new MerchantError("request_refused", options);
}

/** RFC 6749 section 5.1. */
function parseTokenResponse(body: IssuerAnswer["body"], now: number): TokenResponse {
  const members = openAnswer(body ?? {});
  if (members.text("token_type").toLowerCase() !== "bearer") throw invalid("token_type");
  const lifetimeSeconds = members.all["expires_in"];
  if (typeof lifetimeSeconds !== "number" || !(lifetimeSeconds > 0)) throw invalid("expires_in");
  return {
    idToken: members.text("id_token"),
    accessToken: members.text("access_token"),
    ...(members.has("refresh_token") && { refreshToken: members.text("refresh_token") }),
    expiresAt: now + Math.floor(lifetimeSeconds),
  };
}

/** Encodes a form or query. */
export function formOf(members: Form): URLSearchParams {
  const given = Object.entries(members).filter(
    (entry): entry is [string, string] => entry[1] !== undefined,
  );
  return new URLSearchParams(given);
}

function formEncode(text: string): string {
  return new URLSearchParams({ "": text }).toString().slice(1);
}

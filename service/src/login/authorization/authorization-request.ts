import { parseAddress } from "@svc/protocol";
import type { Acr, Client } from "../../accounts/index.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { type OAuthCode, OAuthProblem } from "../../platform/http/problems.ts";
import { acrAtLeast, acrWeakest, isAcr } from "./acr.ts";
import { resolveAudience } from "./audience.ts";
import {
  isRepeatable,
  lengthMaxOf,
  nonceBytesMax,
  type ParameterName,
  parameterNames,
} from "./authorization-parameters.ts";
import { parseScope } from "./scope.ts";

export const promptValues = ["none", "login", "consent", "select_account"] as const;

type Prompt = (typeof promptValues)[number];

/** The authorization request after every check, as it is stored with the login: what the user is asked to approve. */
export interface AuthorizationRequest {
  readonly redirectUri: string;
  /** Space-separated, as asked. */
  readonly scope: string;
  readonly wantsRefresh: boolean;
  readonly audience: readonly string[];
  readonly prompt: readonly Prompt[];
  readonly state?: string;
  readonly nonce?: string;
  readonly codeChallenge?: string;
  readonly acrMinimum?: Acr;
  /** Seconds. */
  readonly maxAge?: number;
  readonly uiLocales?: string;
  readonly dpopJkt?: string;
  /** Identity that an id token hint names: nobody else may answer. */
  readonly expectedUser?: string;
  /** Identity that a login hint names: the session of another identity does not answer. */
  readonly hintedUser?: string;
  /** Id of the pushed request that it comes from. */
  readonly pushedId?: string;
}

/** The value of a parameter, the first one if it is repeated; an empty one counts as absent (RFC 6749 section 3.1). */
export function firstValueOf(given: Form, name: ParameterName): string | undefined {
  const value = [given[name]].flat()[0];
  return value === undefined || value === "" ? undefined : value;
}

/** A parameter that must be there exactly once. @throws {OAuthProblem} invalid_request */
export function getOnce(given: Form, name: ParameterName): string {
  const value = firstValueOf(given, name);
  if (value === undefined || Array.isArray(given[name]))
    fail("invalid_request", `${name} must be given once`);
  return value;
}

/**
 * Compared character by character, without exception (decisions section 2, redirect_uri).
 *
 * @throws {OAuthProblem} which is never sent to that URI
 */
export function getRedirectUri(given: Form, client: Client): string {
  const uri = getOnce(given, "redirect_uri");
  if (!client.redirectUris.includes(uri))
    fail(
      "invalid_request",
      "redirect_uri is not registered for this client, character by character",
    );
  return uri;
}

/** The request that the checks build up, one after the other. */
type Draft = { -readonly [K in keyof AuthorizationRequest]?: AuthorizationRequest[K] };

export interface CheckContext {
  readonly client: Client;
  readonly isPushed: boolean;
  /** Reads the user of an id token that this service issued to this client, expired or not; null when it is not one. */
  readonly userOfIdToken: (idToken: string) => string | null;
}

type Check = (given: Form, draft: Draft, context: CheckContext) => void;

function fail(code: OAuthCode, description: string): never {
  throw new OAuthProblem(code, description);
}

/** RFC 9126 section 6. */
const refuseUnpushed: Check = (_given, _draft, { client, isPushed }) => {
  if (client.pushedRequestRequired && !isPushed)
    fail("invalid_request", "this client must push its requests: request_uri is missing");
};

const refuseRepeated: Check = (given) => {
  const repeated = parameterNames.find((name) => Array.isArray(given[name]) && !isRepeatable(name));
  if (repeated !== undefined) fail("invalid_request", `${repeated} is given more than once`);
};

const refuseLong: Check = (given) => {
  for (const name of parameterNames) {
    const most = lengthMaxOf(name);
    if ([given[name]].flat().some((value) => (value ?? "").length > most))
      fail("invalid_request", `${name} is longer than ${most} characters`);
  }
};

/** Counted as the id token spells it: JSON takes up to six bytes for a character. */
const refuseLongNonce: Check = (given) => {
  const spelled = JSON.stringify(firstValueOf(given, "nonce") ?? "").slice(1, -1);
  if (Buffer.byteLength(spelled) > nonceBytesMax)
    fail("invalid_request", `nonce takes more than ${nonceBytesMax} bytes`);
};

const takeState: Check = (given, draft) => {
  const state = firstValueOf(given, "state");
  if (state !== undefined) draft.state = state;
};

const refuseUnsupported: Check = (given) => {
  if (firstValueOf(given, "request") !== undefined)
    fail("request_not_supported", "request objects are not supported; push the request instead");
  if (firstValueOf(given, "registration") !== undefined)
    fail("registration_not_supported", "registration is not supported");
};

const checkResponseType: Check = (given) => {
  const type = firstValueOf(given, "response_type");
  if (type === undefined) fail("invalid_request", "response_type is missing");
  if (type !== "code") fail("unsupported_response_type", "response_type must be code");
};

const checkResponseMode: Check = (given) => {
  const mode = firstValueOf(given, "response_mode") ?? "query";
  if (mode !== "query") fail("invalid_request", "response_mode must be query");
};

const checkScope: Check = (given, draft) => {
  const { scope, wantsRefresh } = parseScope(firstValueOf(given, "scope"));
  draft.scope = scope;
  draft.wantsRefresh = wantsRefresh;
};

const checkChallenge: Check = (given, draft, { client }) => {
  const challenge = firstValueOf(given, "code_challenge");
  const method = firstValueOf(given, "code_challenge_method");
  if (challenge === undefined) {
    if (method !== undefined) fail("invalid_request", "code_challenge is missing");
    if (client.pkceRequired) fail("invalid_request", "PKCE is required: code_challenge is missing");
    return;
  }
  // Absent means plain (RFC 7636 section 4.3), which protects nobody.
  if (method !== "S256") fail("invalid_request", "code_challenge_method must be S256");
  if (!/^[A-Za-z0-9_-]{43}$/.test(challenge))
    fail("invalid_request", "code_challenge must be 43 characters of base64url");
  draft.codeChallenge = challenge;
};

const checkAudience: Check = (given, draft, { client }) => {
  draft.audience = resolveAudience(given, client);
};

const checkPrompt: Check = (given, draft) => {
  const prompts = (firstValueOf(given, "prompt") ?? "")
    .split(" ")
    .filter((prompt) => prompt !== "");
  if (!prompts.every((prompt) => promptValues.some((value) => value === prompt)))
    fail("invalid_request", `prompt may hold ${promptValues.join(", ")}, separated by spaces`);
  if (prompts.includes("none") && prompts.length > 1)
    fail("invalid_request", "prompt none stands alone");
  draft.prompt = prompts as Prompt[];
};

const checkMaxAge: Check = (given, draft) => {
  const age = firstValueOf(given, "max_age");
  if (age === undefined) return;
  if (!/^\d{1,15}$/.test(age)) fail("invalid_request", "max_age must be a whole number of seconds");
  draft.maxAge = Number(age);
};

const checkAcr: Check = (given, draft, { client }) => {
  const asked = (firstValueOf(given, "acr_values") ?? "").split(" ").filter(isAcr);
  const wanted = asked.length === 0 ? undefined : acrWeakest(asked);
  const minimum = client.acrMinimum ?? undefined;
  const strongest =
    wanted === undefined || (minimum !== undefined && acrAtLeast(minimum, wanted))
      ? minimum
      : wanted;
  if (strongest !== undefined) draft.acrMinimum = strongest;
};

const checkHints: Check = (given, draft, { userOfIdToken }) => {
  const idToken = firstValueOf(given, "id_token_hint");
  if (idToken !== undefined) {
    const user = userOfIdToken(idToken);
    if (user === null) fail("invalid_request", "id_token_hint is not an id token of this client");
    draft.expectedUser = user;
  }
  const hinted = parseAddress((firstValueOf(given, "login_hint") ?? "").replace(/^svcid:/, ""));
  if (hinted !== null) draft.hintedUser = hinted;
};

const takeTexts: Check = (given, draft) => {
  const nonce = firstValueOf(given, "nonce");
  if (nonce !== undefined) draft.nonce = nonce;
  const locales = firstValueOf(given, "ui_locales");
  if (locales !== undefined) draft.uiLocales = locales;
};

const checkDpopKey: Check = (given, draft) => {
  const thumbprint = firstValueOf(given, "dpop_jkt");
  if (thumbprint === undefined) return;
  if (!/^[A-Za-z0-9_-]{43}$/.test(thumbprint))
    fail("invalid_request", "dpop_jkt must be a SHA-256 thumbprint in base64url");
  draft.dpopJkt = thumbprint;
};

/** The checks in order, once client and redirect URI are known to be good; the first fault is the answer. */
const checks: readonly Check[] = [
  takeState,
  refuseUnpushed,
  refuseRepeated,
  // Before the length check: a client that sends a long request object has to learn that none are supported.
  refuseUnsupported,
  refuseLong,
  refuseLongNonce,
  checkResponseType,
  checkResponseMode,
  checkScope,
  checkChallenge,
  checkAudience,
  checkPrompt,
  checkMaxAge,
  checkAcr,
  checkHints,
  takeTexts,
  checkDpopKey,
];

/** The error codes that the checks may give. */
export const authorizationFaults = [
  "invalid_request",
  "unsupported_response_type",
  "invalid_scope",
  "invalid_target",
  "request_not_supported",
  "registration_not_supported",
] as const satisfies readonly OAuthCode[];

/**
 * Judges everything but client and redirect URI (RFC 6749 section 4.1.1, OpenID Connect Core section 3.1.2.1, RFC 7636,
 * RFC 8707, RFC 9449 section 10).
 *
 * @throws {OAuthProblem} which the caller sends to the redirect URI
 */
export function checkAuthorizationRequest(
  given: Form,
  redirectUri: string,
  context: CheckContext,
): AuthorizationRequest {
  const draft: Draft = { redirectUri };
  for (const check of checks) check(given, draft, context);
  return draft as AuthorizationRequest;
}

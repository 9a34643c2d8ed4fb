import {
  type AccountsContext,
  type ApiKey,
  apiKeyOf,
  type Entitlement,
  requireApiKey,
} from "../accounts/index.ts";
import { answerEnvelopeError, problemOf } from "../platform/http/http-errors.ts";
import type { Http } from "../platform/http/http.ts";
import { inWordsOfKyb, Problem, type Reason } from "../platform/http/problems.ts";
import { readIdempotencyKey } from "./idempotency-key.ts";

/** The refusals of any KYB route before it examines the request: 401, 403 and 429 (decisions section 1, Errors). */
export const callerReasons = [
  "apikey_missing",
  "apikey_invalid",
  "kyb_not_entitled",
  "rate_limited",
] as const satisfies readonly Reason[];

/**
 * Further refusals of KYB routes with a JSON body; all faults of its content have one reason (decisions section 6).
 */
export const kybBodyReasons = [
  "malformed_request",
  "body_too_large",
  "unsupported_media_type",
] as const satisfies readonly Reason[];

/**
 * Guards every route of this scope by an API key whose organization has the entitlement. Both are checked before the
 * body is read; the form of an `Idempotency-Key` is checked afterwards.
 */
export function requireEntitlement(
  ctx: AccountsContext,
  scope: Http,
  entitlement: Entitlement,
): void {
  scope.setErrorHandler((error, request, reply) => {
    const found = problemOf(error);
    const worded = found instanceof Problem ? inWordsOfKyb(found) : error;
    return answerEnvelopeError(ctx, { error: worded, request, reply });
  });
  requireApiKey(ctx, scope);
  scope.addHook("onRequest", async (request) => checkEntitled(apiKeyOf(request), entitlement));
  // Before a route looks anything up: 400 takes precedence over 404.
  scope.addHook("preHandler", async (request) => {
    if (request.method !== "GET") readIdempotencyKey(request);
  });
}

/** @throws {Problem} kyb_not_entitled, kyb_signature_not_entitled, pii_not_entitled */
export function checkEntitled(key: Pick<ApiKey, "entitlements">, entitlement: Entitlement): void {
  if (!key.entitlements.has(entitlement)) throw new Problem(missingReason(entitlement));
}

function missingReason(entitlement: Entitlement): Reason {
  if (entitlement === "kyb:signature") return "kyb_signature_not_entitled";
  return entitlement === "kyb:pii" ? "pii_not_entitled" : "kyb_not_entitled";
}

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Ctx } from "../context.ts";
import { isOutage, isUnstorable } from "../database/database-fault.ts";
import { challengeOf, invalidRequest, OAuthProblem, Problem } from "./problems.ts";
import type { Http } from "./http.ts";
import { noteRefusal } from "./refused-answers.ts";
import { sayFault, sayFormFault, type ValidationFault } from "./validation-fault.ts";

interface FrameworkError {
  code?: string;
  statusCode?: number;
  validationContext?: string;
  validation?: ValidationFault[];
}

/**
 * Turns an error of the framework into a row of the table; anything unknown is a fault of ours.
 *
 * @param body what the route takes
 */
export function problemOf(
  error: unknown,
  body: "json" | "form" = "json",
): Problem | OAuthProblem | null {
  if (error instanceof Problem || error instanceof OAuthProblem) return error;
  const { code, statusCode, validation, validationContext } = error as FrameworkError;
  if (validation !== undefined) {
    const isForm = validationContext === "querystring" || body === "form";
    return invalidRequest(isForm ? sayFormFault(validation) : sayFault(validation));
  }
  if (code === "FST_ERR_CTP_BODY_TOO_LARGE") return new Problem("body_too_large");
  if (code === "FST_ERR_CTP_INVALID_MEDIA_TYPE" || statusCode === 415)
    return new Problem("unsupported_media_type");
  if (statusCode !== undefined && statusCode >= 400 && statusCode < 500)
    return new Problem("malformed_request");
  if (statusCode === 503) return new Problem("unavailable");
  if (isUnstorable(error)) return new Problem("malformed_request");
  return isOutage(error) ? new Problem("unavailable") : null;
}

/** Logs a fault that has no row in the table, with the id of the request. */
export function logFault(ctx: Pick<Ctx, "log">, error: unknown, request: FastifyRequest): void {
  ctx.log.error(
    { requestId: request.id, route: request.routeOptions.url, err: error },
    "a request failed",
  );
}

/** A failed call: what to answer, and where. */
export interface Failure {
  readonly error: unknown;
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export async function answerEnvelopeError(ctx: Ctx, failure: Failure): Promise<FastifyReply> {
  const { error, request, reply } = failure;
  const found = problemOf(error);
  if (found instanceof OAuthProblem) return answerOAuthError(ctx, failure);
  if (found === null) logFault(ctx, error, request);
  const problem = found ?? new Problem("internal");
  noteRefusal(reply, problem.reason);
  const { details, headers = {} } = problem.options;
  if (problem.reason === "body_too_large") readOn(reply);
  const challenge = challengeOf(problem.reason);
  if (challenge !== null) void reply.header("www-authenticate", challenge);
  const body = {
    code: problem.status,
    reason: problem.reason,
    message: problem.message,
    requestId: request.id,
    ...(details === undefined ? {} : { details }),
  };
  return reply
    .code(problem.status)
    .headers(headers)
    .header("cache-control", "no-store")
    .send({ success: false, error: body });
}

/**
 * Keeps the connection open, which the framework would close behind a body that is too large. Node discards the rest of
 * it, for as long as a request may take. While the process drains, the connection ends all the same, as it was
 * announced.
 */
function readOn(reply: FastifyReply): void {
  if (!reply.raw.hasHeader("connection")) reply.removeHeader("connection");
}

/** The OAuth shape of an error. Another content type is 400, as RFC 6749 section 5.2 says of a malformed request. */
export function oauthProblemOf(error: unknown): OAuthProblem | null {
  const found = problemOf(error, "form");
  if (found === null || found instanceof OAuthProblem) return found;
  // We refuse a coding by a problem of our own; a content type is refused by the framework.
  const isOfOtherType = found.reason === "unsupported_media_type" && found !== error;
  if (isOfOtherType || isFormMissing(error))
    return new OAuthProblem(
      "invalid_request",
      "the body must be application/x-www-form-urlencoded",
    );
  const { status } = found;
  const { headers = {} } = found.options;
  if (found.reason === "rate_limited" || found.reason === "unavailable")
    return new OAuthProblem("temporarily_unavailable", found.message, { status, headers });
  const description = found.message.replace(/^Invalid Request: /, "");
  return new OAuthProblem("invalid_request", description, { status, headers });
}

/** Whether the form is missing: the parameters are in the query, or there are none. */
function isFormMissing(error: unknown): boolean {
  const { validation, validationContext } = error as FrameworkError;
  const [first] = validation ?? [];
  return validationContext === "body" && first?.instancePath === "" && first.keyword === "type";
}

/**
 * Makes every failure in this scope an OAuth error (RFC 6749 section 5.2) instead of the envelope.
 *
 * @param resource.challenge the scheme to ask for if a fault names none: a resource also tells the sender of a
 * malformed request how to authenticate (RFC 6750 section 3); elsewhere a 401 asks for `Basic`
 */
export function useOAuthErrors(
  ctx: Ctx,
  scope: Http,
  resource: { readonly challenge?: "Bearer" } = {},
): void {
  oauthScopes.add(scope);
  scope.setErrorHandler((error, request, reply) =>
    answerOAuthError(ctx, { error, request, reply, ...resource }),
  );
}

const oauthScopes = new WeakSet<object>();

export function hasOAuthErrors(scope: object): boolean {
  return oauthScopes.has(scope);
}

/** @param failure.challenge the scheme of a resource, see {@link useOAuthErrors} */
async function answerOAuthError(
  ctx: Ctx,
  { error, request, reply, challenge }: Failure & { readonly challenge?: "Bearer" },
): Promise<FastifyReply> {
  const found = oauthProblemOf(error);
  if (found === null) logFault(ctx, error, request);
  const problem =
    found ?? new OAuthProblem("server_error", `something failed here; quote ${request.id}`);
  noteRefusal(reply, problem.code);
  if (problem.status === 413) readOn(reply);
  const scheme = problem.options.challenge ?? schemeOf(problem, challenge);
  if (scheme !== undefined)
    void reply.header("www-authenticate", oauthChallengeOf(problem, scheme));
  return reply
    .code(problem.status)
    .headers({ "cache-control": "no-store", pragma: "no-cache", ...problem.options.headers })
    .send({ error: problem.code, error_description: problem.message });
}

type Scheme = NonNullable<OAuthProblem["options"]["challenge"]> | "Basic";

/**
 * A 401 always names a scheme that would do (RFC 9110 section 15.5.2): its own at a resource, elsewhere the only one of
 * HTTP that clients can use, even if this client uses another method.
 */
function schemeOf(
  { code, status }: OAuthProblem,
  ofResource: "Bearer" | undefined,
): Scheme | undefined {
  if (status === 401) return ofResource ?? "Basic";
  return code === "invalid_request" ? ofResource : undefined;
}

function oauthChallengeOf(problem: OAuthProblem, scheme: Scheme): string {
  if (scheme === "Basic") return 'Basic realm="svc", charset="UTF-8"';
  const extra = scheme === "DPoP" ? ', algs="ES256 RS256"' : "";
  return `${scheme} realm="svc", error="${problem.code}", error_description="${problem.message}"${extra}`;
}

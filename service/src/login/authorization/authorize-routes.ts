import type { FastifyReply, FastifyRequest } from "fastify";
import type { Http } from "../../platform/http/http.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { logFault } from "../../platform/http/http-errors.ts";
import { noteRefusal } from "../../platform/http/refused-answers.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { htmlPage, refusalPages } from "../../platform/http/refusals.ts";
import { Type } from "../../platform/http/schema.ts";
import { sendsOurCookies } from "../attempt/browser-cookies.ts";
import type { LoginContext } from "../login-context.ts";
import { browserOf, type Call, leave, showLogin } from "../page/page-replies.ts";
import { findPushedPage } from "../page/pushed-page.ts";
import { authorizationMembers, takeAnyForm } from "./authorization-parameters.ts";
import { authorizationFaults } from "./authorization-request.ts";
import { authorize, type AuthorizeOutcome } from "./authorize.ts";
import { isPersonal, urlOf } from "./request-url.ts";
import { limitAddress } from "./start-limits.ts";

/** Only the client is required: a pushed request has the rest behind its `request_uri`. */
const AuthorizationForm = Type.Object(authorizationMembers, { required: ["client_id"] });
const redirectFaults = [...authorizationFaults, "request_uri_not_supported", "login_required"]
  .map((each) => `\`${each}\``)
  .join(", ");
/** Without `prompt=none` these are shown as a page. */
const silentFaults = "with `prompt=none` also `temporarily_unavailable` and `server_error`";
const authorizationAnswers = {
  200: htmlPage("The page with the QR code."),
  303: Type.Null({
    description: `Redirects to the redirect URI with \`state\` and \`iss\`, and either \`code\`, if a session answered, or \`error\`: ${redirectFaults}; ${silentFaults}.`,
  }),
  ...refusalPages({
    400: "The client or its redirect URI is wrong, or the pushed request is gone: never a redirect.",
    429: "Too many logins from this address or of this client.",
  }),
};

/** `GET` and `POST /oauth2/auth` (OpenID Connect Core section 3.1.2.1). */
export function authorizeRoutes(ctx: LoginContext, scope: Http): void {
  scope.get(
    "/oauth2/auth",
    {
      validatorCompiler: takeAnyForm,
      schema: {
        querystring: AuthorizationForm,
        response: authorizationAnswers,
        tags: ["login"],
        operationId: "authorize",
        summary: "Request authorization: shows the QR page",
      },
    },
    async (request, reply) => start(ctx, request.query as Form, { request, reply }),
  );
  scope.post(
    "/oauth2/auth",
    {
      validatorCompiler: takeAnyForm,
      schema: {
        body: AuthorizationForm,
        response: {
          ...authorizationAnswers,
          303: Type.Null({
            description:
              "As for GET. A form that another site sent without cookies is redirected to the same request by GET.",
          }),
          ...refusalPages({ 413: "The form is too large.", 415: "The body is no form." }),
        },
        consumes: ["application/x-www-form-urlencoded"],
        tags: ["login"],
        operationId: "authorizeByForm",
        summary: "Request authorization with a form",
      },
    },
    async (request, reply) => {
      const form = request.body as Form;
      const url = urlForCookies(ctx, form, request);
      return url === null ? start(ctx, form, { request, reply }) : leave(reply, url);
    },
  );
}

async function start(
  ctx: LoginContext,
  form: Form,
  { request, reply }: Call,
): Promise<FastifyReply> {
  const browser = browserOf(ctx, request);
  await limitAddress(ctx, browser.address);
  const loadAgain = async (error: unknown): Promise<AuthorizeOutcome> => {
    const isUsedUp = error instanceof OAuthProblem && error.code === "invalid_request_uri";
    const page = isUsedUp ? await findPushedPage(ctx, form, browser) : null;
    if (page === null) throw error;
    return { kind: "page", ...page, cookies: [] };
  };
  const outcome = await authorize(ctx, form, browser).catch(loadAgain);
  if (outcome.kind === "page") return showLogin(ctx, outcome, { request, reply });
  if (outcome.failure !== undefined) logFault(ctx, outcome.failure, request);
  if (outcome.refusal !== undefined) noteRefusal(reply, outcome.refusal);
  return leave(reply, outcome.location);
}

/**
 * The same request as a GET, for a form posted by another site: browsers withhold our cookies from it (SameSite=Lax),
 * so this browser's session and attempts would not be seen. Null if the form is to be answered as it came.
 */
function urlForCookies(ctx: LoginContext, form: Form, { headers }: FastifyRequest): string | null {
  if (headers["sec-fetch-site"] !== "cross-site") return null;
  if (sendsOurCookies(ctx.config, headers.cookie)) return null;
  // A hint names a person, so it must not appear in the address bar. With `prompt=none` it has to come along: only a
  // session can answer, and no page shows the address.
  return isPersonal(form) && form["prompt"] !== "none" ? null : urlOf(form);
}

import { Type } from "../../platform/http/schema.ts";
import { shortAddress } from "@svc/protocol";
import type { FastifyReply } from "fastify";
import type { Http } from "../../platform/http/http.ts";
import { fillBody } from "../../platform/http/request-bodies.ts";
import { logFault, oauthProblemOf } from "../../platform/http/http-errors.ts";
import { noteRefusal } from "../../platform/http/refused-answers.ts";
import { type Form, valueOf } from "../../platform/http/http-input.ts";
import { htmlPage, refusalPages } from "../../platform/http/refusals.ts";
import { endedSessionCookie } from "../attempt/browser-cookies.ts";
import { logOut, type LogoutOutcome, logoutPath } from "./logout.ts";
import { renderErrorPage } from "../page/error-page.ts";
import { renderLoggedOutPage, renderLogoutPage, renderStayedPage } from "../page/logout-page.ts";
import { pageHeaders } from "../page/page-headers.ts";
import { type Locale, pickLocale } from "../../platform/http/pick-locale.ts";
import { type Call, leave } from "../page/page-replies.ts";
import type { TokenContext } from "../token-context.ts";
import { LogoutForm } from "../token/token-schemas.ts";

interface LogoutCall extends Call {
  readonly form: Form;
}

/** Adds RP-initiated logout. What fails is a page: the browser is never sent to an address that is not registered. */
export function logoutRoutes(ctx: TokenContext, scope: Http): void {
  const tags = ["login"];
  const response = {
    200: htmlPage("The person is asked, or logged out and stays here."),
    303: Type.Null({ description: "Logged out; redirects to `post_logout_redirect_uri`." }),
    ...refusalPages({ 400: "`invalid_request`: nothing is ever sent to an unregistered address." }),
  };
  scope.removeContentTypeParser("application/json");
  scope.setErrorHandler((error, request, reply) => {
    const form = (request.body ?? request.query ?? {}) as Form;
    return showError(ctx, error, { request, reply, form });
  });
  const onQuery = {
    querystring: LogoutForm,
    response,
    tags,
    operationId: "logOut",
    summary: "Log the browser out",
  };
  scope.get(logoutPath, { schema: onQuery }, async (request, reply) =>
    answer(ctx, "GET", { request, reply, form: request.query }),
  );
  const onForm = {
    body: LogoutForm,
    response: {
      ...response,
      ...refusalPages({ 413: "The form is too large." }),
    },
    consumes: ["application/x-www-form-urlencoded"],
    tags,
    operationId: "logOutByForm",
    summary: "Log the browser out, by form",
  };
  // No parameter is required (OpenID Connect RP-Initiated Logout section 2), so a body is not either.
  const options = { schema: onForm, preValidation: fillBody };
  scope.post(logoutPath, options, async (request, reply) =>
    answer(ctx, "POST", { request, reply, form: request.body }),
  );
}

async function answer(
  ctx: TokenContext,
  method: "GET" | "POST",
  call: LogoutCall,
): Promise<FastifyReply> {
  const { form, request } = call;
  const outcome = await logOut(ctx, { method, form, cookieHeader: request.headers.cookie });
  return show(ctx, outcome, call);
}

function show(ctx: TokenContext, outcome: LogoutOutcome, call: LogoutCall): FastifyReply {
  const { reply } = call;
  if (outcome.kind === "ask") return ask(outcome, call);
  if (outcome.kind === "again") return leave(reply, `${logoutPath}?${outcome.query}`);
  const locale = localeOf(call);
  const headers = pageHeaders();
  if (outcome.kind === "stayed") return reply.headers(headers).send(renderStayedPage({ locale }));
  if (outcome.cookieEnded) void reply.header("set-cookie", endedSessionCookie(ctx.config));
  if (outcome.location !== null) return leave(reply, outcome.location);
  return reply.headers(headers).send(renderLoggedOutPage({ locale }));
}

function ask(outcome: Extract<LogoutOutcome, { kind: "ask" }>, call: LogoutCall): FastifyReply {
  const { client, hidden, user } = outcome;
  const page = renderLogoutPage({
    locale: localeOf(call),
    action: logoutPath,
    hidden,
    clientName: client?.name ?? null,
    identity: shortAddress(user),
  });
  const headers = pageHeaders({ leadsTo: hidden["post_logout_redirect_uri"] });
  return call.reply.headers(headers).send(page);
}

function localeOf({ form, request }: LogoutCall): Locale {
  return pickLocale(valueOf(form, "ui_locales"), request.headers["accept-language"]);
}

/** Where a person logs out without a client, in the language that this one asked for. */
function directPathOf(form: Form): string {
  const uiLocales = valueOf(form, "ui_locales");
  if (uiLocales === undefined) return logoutPath;
  return `${logoutPath}?${new URLSearchParams({ ui_locales: uiLocales }).toString()}`;
}

function showError(ctx: TokenContext, error: unknown, call: LogoutCall): FastifyReply {
  const { request, reply } = call;
  const problem = oauthProblemOf(error);
  if (problem === null) logFault(ctx, error, request);
  const status = problem?.status ?? 500;
  const code = problem?.code ?? "server_error";
  noteRefusal(reply, code);
  const page = renderErrorPage({
    locale: localeOf(call),
    status,
    code,
    message: problem?.message ?? "something failed here",
    requestId: request.id,
    logoutUrl: directPathOf(call.form),
  });
  return reply
    .code(status)
    .headers({ ...problem?.options.headers, ...pageHeaders() })
    .send(page);
}

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Client } from "../../accounts/index.ts";
import { callerAddressOf, networkOf } from "../../platform/http/client-address.ts";
import { logFault, oauthProblemOf, problemOf } from "../../platform/http/http-errors.ts";
import { noteRefusal } from "../../platform/http/refused-answers.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { OAuthProblem, Problem } from "../../platform/http/problems.ts";
import { type Attempt, pagePathOf } from "../attempt/attempt.ts";
import { attemptSecretHash } from "../attempt/browser-cookies.ts";
import { getAttempt } from "../attempt/read-attempt.ts";
import { firstValueOf } from "../authorization/authorization-request.ts";
import type { BrowserCall } from "../attempt/new-attempt.ts";
import { isPersonal, urlOf } from "../authorization/request-url.ts";
import type { LoginContext } from "../login-context.ts";
import { sendPage } from "./gzip.ts";
import { viewOf } from "./login-view.ts";
import { renderErrorPage } from "./error-page.ts";
import { renderLoginPage } from "./login-page.ts";
import { pageHeaders } from "./page-headers.ts";
import { pickLocale } from "../../platform/http/pick-locale.ts";

/** A request and what answers it. */
export interface Call {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
}

export function browserOf(ctx: LoginContext, request: FastifyRequest): BrowserCall {
  const address = callerAddressOf(ctx, request);
  return { cookieHeader: request.headers.cookie, address, network: networkOf(address) };
}

interface LoginPage {
  readonly attempt: Attempt;
  readonly client: Client;
  /** Cookies that are set with the page. */
  readonly cookies?: readonly string[];
}

/** Shows the page of an attempt as it stands now. */
export function showLogin(
  ctx: LoginContext,
  { attempt, client, cookies = [] }: LoginPage,
  { request, reply }: Call,
): FastifyReply {
  const view = viewOf(ctx, { attempt, client }, request.headers["accept-language"]);
  void reply.headers({
    ...pageHeaders({ leadsTo: attempt.request.redirectUri }),
    "set-cookie": [...cookies],
  });
  // Safe against BREACH: the secrets in a waiting page are random, and an attacker who varies the reflected parts
  // begins another login each time.
  const mayPack = view.state.kind === "waiting";
  return sendPage(renderLoginPage(view), { request, reply, mayPack });
}

/** Redirects the browser by 303, without revealing where it comes from. */
export function leave(
  reply: FastifyReply,
  location: string,
  cookies: readonly string[] = [],
): FastifyReply {
  return reply
    .code(303)
    .headers({
      location,
      "cache-control": "no-store",
      "referrer-policy": "no-referrer",
      ...(cookies.length === 0 ? {} : { "set-cookie": [...cookies] }),
    })
    .send();
}

/** Shows what went wrong, and what to do next if there is something. */
export async function showError(
  ctx: LoginContext,
  { error, request, reply }: { error: unknown } & Call,
): Promise<FastifyReply> {
  const found = problemOf(error);
  if (found === null) logFault(ctx, error, request);
  const oauth = found instanceof OAuthProblem ? found : oauthProblemOf(error);
  const status = found?.status ?? 500;
  const code = found instanceof Problem ? found.reason : (oauth?.code ?? "server_error");
  noteRefusal(reply, code);
  const retryAfterSeconds = found instanceof Problem ? found.options.retryAfterSeconds : undefined;
  const page = renderErrorPage({
    locale: pickLocale(await uiLocalesOf(ctx, request, status), request.headers["accept-language"]),
    status,
    code,
    message: found?.message ?? "something failed here",
    requestId: request.id,
    ...(status === 429
      ? { ...retryOf(request), retryAfterSeconds: retryAfterSeconds ?? 1 }
      : pageOf(ctx, request)),
  });
  return reply
    .code(status)
    .headers({ ...found?.options.headers, ...pageHeaders() })
    .send(page);
}

/**
 * `ui_locales` of this request, or of the login that it is about; not read after a failure of ours, such as a database
 * that is down.
 */
async function uiLocalesOf(
  ctx: LoginContext,
  request: FastifyRequest,
  status: number,
): Promise<string | undefined> {
  const form = (request.body ?? request.query ?? {}) as Form;
  const { loginId } = (request.params ?? {}) as { loginId?: string };
  if (loginId === undefined || status >= 500) return firstValueOf(form, "ui_locales");
  const attempt = await getAttempt(ctx, loginId).catch(() => null);
  return attempt?.request.uiLocales;
}

/**
 * The page of the login, if this browser holds the login: from there the person can start again or go back to the site.
 */
function pageOf(ctx: LoginContext, request: FastifyRequest): { retryUrl?: string } {
  const { loginId } = (request.params ?? {}) as { loginId?: string };
  if (loginId === undefined || request.routeOptions.url === pagePathOf(":loginId")) return {};
  const held = attemptSecretHash(ctx.config, request.headers.cookie, loginId);
  return held === null ? {} : { retryUrl: pagePathOf(loginId) };
}

/** The same request as a link; nothing for a form that does not fit into one, or names the person. */
function retryOf(request: FastifyRequest): { retryUrl?: string } {
  if (request.method === "GET") return { retryUrl: request.url };
  const form = (request.body ?? {}) as Form;
  const retryUrl = isPersonal(form) ? null : urlOf(form);
  return retryUrl === null ? {} : { retryUrl };
}

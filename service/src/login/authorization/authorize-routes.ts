import { type Static, Type } from "../../platform/schema.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { callerAddressOf, networkOf } from "../../platform/client-address.ts";
import type { Http } from "../../platform/http.ts";
import { oauthProblemOf, problemOf } from "../../platform/http-errors.ts";
import type { Form } from "../../platform/http-input.ts";
import { OAuthProblem, Problem } from "../../platform/problems.ts";
import { htmlPage, refusalPages } from "../../platform/refusals.ts";
import { authorizationMembers, takeAnyForm } from "./authorization-parameters.ts";
import { authorizationFaults, valueOf } from "./authorization-request.ts";
import { authorize, type AuthorizeOutcome, type BrowserCall } from "./authorize.ts";
import {
  getBrowserAttempt,
  giveUpGathering,
  restartLogin,
  showStaticCode,
} from "../attempt/browser-attempt.ts";
import { attemptSecretHash, sendsOurCookies } from "../attempt/browser-cookies.ts";
import { readBusinessPart } from "../business/business-part.ts";
import { finishLogin } from "../attempt/finish.ts";
import type { LoginContext } from "../login-context.ts";
import { stateOf } from "../attempt/login-state.ts";
import { viewOf } from "../page/login-view.ts";
import {
  assetPrefix,
  findNamesake,
  loadPageAssets,
  pageHeaders,
  pickLocale,
  renderErrorPage,
  renderLoginPage,
} from "../page/pages.ts";
import { findPushedPage } from "../page/pushed-page.ts";
import { refuseOnSameDevice, type Returned, returnOnSameDevice } from "../attempt/same-device.ts";
import { limitAddress } from "./start-limits.ts";
import type { StatusStreams } from "../attempt/status-stream.ts";

const LoginParams = Type.Object({ loginId: Type.String({ pattern: "^[A-Za-z0-9_-]{22}$" }) });
const AuthorizationForm = Type.Object(authorizationMembers);
const redirectFaults = [...authorizationFaults, "login_required"]
  .map((each) => `\`${each}\``)
  .join(", ");
const authorizationAnswers = {
  200: htmlPage("The page with the QR code."),
  303: Type.Null({
    description: `To the redirect URI, with \`state\` and \`iss\`: \`code\` from the session, or \`error\`: ${redirectFaults}.`,
  }),
  ...refusalPages({
    400: "The client or its redirect URI is wrong, or the pushed request is gone: never a redirect.",
    429: "Too many logins from this address or of this client.",
  }),
};

function browserOf(ctx: LoginContext, request: FastifyRequest): BrowserCall {
  const address = callerAddressOf(ctx, request);
  return { cookieHeader: request.headers.cookie, address, network: networkOf(address) };
}

/** The routes that a browser meets while a person logs in. Every failure is a page, never a redirect to somewhere unproven. */
export async function authorizeRoutes(
  ctx: LoginContext,
  http: Http,
  streams: StatusStreams,
): Promise<void> {
  await http.register(async (scope: Http) => {
    scope.setErrorHandler((error, request, reply) => showError(ctx, { error, request, reply }));
    // Forms alone (OpenID Connect Core section 3.1.2.1): a JSON body would get past what a browser's preflight guards.
    scope.removeContentTypeParser("application/json");
    scope.get(
      "/oauth2/auth",
      {
        validatorCompiler: takeAnyForm,
        schema: {
          querystring: AuthorizationForm,
          response: authorizationAnswers,
          tags: ["login"],
          summary: "Authorization request; shows the QR page",
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
                "As for GET; or, for a form of another site that came without cookies, to the same request by GET.",
            }),
            ...refusalPages({ 413: "The form is too large.", 415: "The body is no form." }),
          },
          consumes: ["application/x-www-form-urlencoded"],
          tags: ["login"],
          summary: "Authorization request by form",
        },
      },
      async (request, reply) => {
        const form = request.body as Form;
        const url = urlForCookies(ctx, form, request);
        return url === null ? start(ctx, form, { request, reply }) : leave(reply, url);
      },
    );
    pageRoutes(ctx, scope);
    formRoutes(ctx, scope);
    returnRoute(ctx, scope);
  });
  await http.register(async (scope: Http) => statusRoutes(ctx, scope, streams));
  assetRoutes(http);
}

interface Call {
  readonly request: FastifyRequest;
  readonly reply: FastifyReply;
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
  return show(ctx, outcome, { request, reply });
}

function show(
  ctx: LoginContext,
  outcome: AuthorizeOutcome,
  { request, reply }: Call,
): FastifyReply {
  if (outcome.kind === "redirect") return leave(reply, outcome.location);
  const { attempt, client, cookies } = outcome;
  const view = viewOf(ctx, { attempt, client }, request.headers["accept-language"]);
  return reply
    .headers({
      ...pageHeaders({ leadsTo: attempt.request.redirectUri }),
      "set-cookie": [...cookies],
    })
    .send(renderLoginPage(view));
}

/** Sends the browser on by 303, without telling where it comes from. */
function leave(
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

function pageRoutes(ctx: LoginContext, scope: Http): void {
  scope.get(pagePath, { schema: { params: LoginParams, hide: true } }, async (request, reply) => {
    const found = await getBrowserAttempt(ctx, request.params.loginId, browserOf(ctx, request));
    return show(ctx, { kind: "page", ...found, cookies: [] }, { request, reply });
  });
}

/**
 * A form of another site must not act here, whatever the browser makes of SameSite. The pages send no referrer, so their
 * own forms come with `Origin: null` (Fetch, "append a request Origin header"): what browsers say in `Sec-Fetch-Site`
 * counts first.
 */
function refuseForeignOrigin(ctx: LoginContext, request: FastifyRequest): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  const isOurs =
    site === undefined
      ? origin === undefined || origin === ctx.config.baseUrl
      : site === "same-origin";
  if (!isOurs) throw new Problem("forbidden", { message: "this form belongs to the login page" });
}

function formRoutes(ctx: LoginContext, scope: Http): void {
  const form = {
    schema: { params: LoginParams, hide: true },
    preHandler: async (request: FastifyRequest) => refuseForeignOrigin(ctx, request),
  };
  scope.post("/oauth2/login/:loginId/continue", form, async (request, reply) => {
    const { loginId } = request.params;
    const browser = browserOf(ctx, request);
    const { attempt, client } = await getBrowserAttempt(ctx, loginId, browser);
    const state = stateOf(ctx, attempt, client);
    if (state.kind === "failed" && state.location !== undefined)
      return leave(reply, state.location);
    if (state.kind !== "approved") return leave(reply, `/oauth2/login/${loginId}`);
    const released = await finishLogin(ctx, loginId, { browser, channel: "qr" });
    return leave(reply, released.location, released.cookies);
  });
  scope.post("/oauth2/login/:loginId/show-code", form, async (request, reply) => {
    await showStaticCode(ctx, request.params.loginId, browserOf(ctx, request));
    return leave(reply, `/oauth2/login/${request.params.loginId}`);
  });
  scope.post("/oauth2/login/:loginId/give-up", form, async (request, reply) => {
    const { loginId } = request.params;
    const location = await giveUpGathering(ctx, loginId, browserOf(ctx, request));
    return leave(reply, location ?? `/oauth2/login/${loginId}`);
  });
  scope.post("/oauth2/login/:loginId/restart", form, async (request, reply) => {
    const { loginId } = request.params;
    const next = await restartLogin(ctx, loginId, browserOf(ctx, request));
    // The page itself says why there is no other one, and has the way back.
    if (next === null) return leave(reply, `/oauth2/login/${loginId}`);
    return leave(reply, `/oauth2/login/${next.loginId}`, next.cookies);
  });
}

/** What the page's script calls: JSON, errors in the envelope. */
function statusRoutes(ctx: LoginContext, scope: Http, streams: StatusStreams): void {
  scope.post(
    "/oauth2/login/:loginId/finish",
    { schema: { params: LoginParams, hide: true } },
    async (request, reply) => {
      refuseForeignOrigin(ctx, request);
      const { location, cookies } = await finishLogin(ctx, request.params.loginId, {
        browser: browserOf(ctx, request),
        channel: "qr",
      });
      return reply
        .headers({ "set-cookie": [...cookies], "cache-control": "no-store" })
        .send({ location });
    },
  );
  scope.get(
    "/oauth2/login/:loginId/events",
    { schema: { params: LoginParams, hide: true } },
    async (request, reply) => {
      await streams.open(request.params.loginId, reply, browserOf(ctx, request));
      return reply;
    },
  );
  const StatusQuery = Type.Object({ after: Type.Optional(Type.String({ maxLength: 20 })) });
  scope.get(
    "/oauth2/login/:loginId/status",
    { schema: { params: LoginParams, querystring: StatusQuery, hide: true } },
    async (request, reply) => {
      const state = await streams.wait(request.params.loginId, {
        after: request.query.after ?? "",
        browser: browserOf(ctx, request),
      });
      const nowMs = String(ctx.clock.nowMs());
      return reply.headers({ "cache-control": "no-store", "svc-now-ms": nowMs }).send(state);
    },
  );
}

const Whole = Type.String({ pattern: "^(0|[1-9][0-9]{0,14})$" });
const ReturnQuery = Type.Object({
  signature: Type.Optional(Type.String({ maxLength: 2000 })),
  session: Type.Optional(Type.String({ maxLength: 100 })),
  svcID: Type.Optional(Type.String({ maxLength: 100 })),
  business: Type.Optional(Type.String({ maxLength: 100 })),
  epoch: Type.Optional(Whole),
  validUntil: Type.Optional(Whole),
  approval: Type.Optional(Type.String({ maxLength: 200 })),
  error: Type.Optional(Type.String({ maxLength: 100 })),
});

/** The business that the wallet's link names; nothing where it names none, or not all of it. */
function businessOf({
  business,
  epoch,
  validUntil,
  approval,
}: Static<typeof ReturnQuery>): Pick<Returned, "business"> {
  if (business === undefined || epoch === undefined) return {};
  if (validUntil === undefined || approval === undefined) return {};
  const part = {
    address: business,
    epoch: Number(epoch),
    validUntil: Number(validUntil),
    approval,
  };
  return { business: readBusinessPart(part) };
}

/** Where the wallet sends the browser on the same device; the bare address that follows carries no signature. */
function returnRoute(ctx: LoginContext, scope: Http): void {
  scope.get(
    "/w/b/:loginId",
    { schema: { params: LoginParams, querystring: ReturnQuery, hide: true } },
    async (request, reply) => {
      const { loginId } = request.params;
      const { signature, session, svcID, error } = request.query;
      const browser = browserOf(ctx, request);
      if (error !== undefined) {
        if (session !== loginId) throw new Problem("login_not_found");
        return leave(reply, await refuseOnSameDevice(ctx, loginId, browser));
      }
      if (signature === undefined || session === undefined || svcID === undefined) {
        const released = await finishLogin(ctx, loginId, { browser, channel: "app-link" });
        return leave(reply, released.location, released.cookies);
      }
      const outcome = await returnOnSameDevice(ctx, loginId, {
        returned: { signature, session, svcID, ...businessOf(request.query) },
        browser,
      });
      return leave(reply, outcome === "waiting" ? `/oauth2/login/${loginId}` : `/w/b/${loginId}`);
    },
  );
}

function assetRoutes(http: Http): void {
  const assets = loadPageAssets();
  http.get(
    `${assetPrefix}:name`,
    { schema: { params: Type.Object({ name: Type.String({ maxLength: 100 }) }), hide: true } },
    (request, reply) => {
      const path = `${assetPrefix}${request.params.name}`;
      const own = assets.get(path);
      const asset = own ?? findNamesake(path);
      if (asset === null) throw new Problem("route_not_found");
      const isGzip = /\bgzip\b/.test(request.headers["accept-encoding"] ?? "");
      void reply.headers({
        "content-type": asset.contentType,
        "cache-control": own === undefined ? "no-store" : "public, max-age=31536000, immutable",
        vary: "accept-encoding",
      });
      return isGzip
        ? reply.header("content-encoding", "gzip").send(asset.gzip)
        : reply.send(asset.body);
    },
  );
}

const pagePath = "/oauth2/login/:loginId";

/** The page of the login, where this browser holds it: it starts again, or leads back to the site. */
function pageOf(ctx: LoginContext, request: FastifyRequest): { retryUrl?: string } {
  const { loginId } = (request.params ?? {}) as { loginId?: string };
  if (loginId === undefined || request.routeOptions.url === pagePath) return {};
  const held = attemptSecretHash(ctx.config, request.headers.cookie, loginId);
  return held === null ? {} : { retryUrl: `/oauth2/login/${loginId}` };
}

function showError(
  ctx: LoginContext,
  { error, request, reply }: { error: unknown } & Call,
): FastifyReply {
  const found = problemOf(error);
  if (found === null)
    ctx.log.error(
      { requestId: request.id, route: request.routeOptions.url, err: error },
      "a page failed",
    );
  const oauth = found instanceof OAuthProblem ? found : oauthProblemOf(error);
  const status = found?.status ?? 500;
  const code = found instanceof Problem ? found.reason : (oauth?.code ?? "server_error");
  const retryAfterSeconds = found instanceof Problem ? found.options.retryAfterSeconds : undefined;
  const form = (request.body ?? request.query ?? {}) as Form;
  if (retryAfterSeconds !== undefined) void reply.header("retry-after", String(retryAfterSeconds));
  const page = renderErrorPage({
    locale: pickLocale(valueOf(form, "ui_locales"), request.headers["accept-language"]),
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
 * The same request as GET, for a form of another site: browsers hold our cookies back from it (SameSite=Lax), so this
 * browser's session and attempts would not be seen. Null where the form is answered as it came.
 */
function urlForCookies(ctx: LoginContext, form: Form, { headers }: FastifyRequest): string | null {
  if (headers["sec-fetch-site"] !== "cross-site") return null;
  if (sendsOurCookies(ctx.config, headers.cookie)) return null;
  // Only a session can answer `none`, and its address is never shown: there the hints come along.
  return isPersonal(form) && form["prompt"] !== "none" ? null : urlOf(form);
}

/** The same request as a link; nothing for a form that does not fit into one or says who the person is. */
function retryOf(request: FastifyRequest): { retryUrl?: string } {
  if (request.method === "GET") return { retryUrl: request.url };
  const form = (request.body ?? {}) as Form;
  const retryUrl = isPersonal(form) ? null : urlOf(form);
  return retryUrl === null ? {} : { retryUrl };
}

function isPersonal(form: Form): boolean {
  return "id_token_hint" in form || "login_hint" in form;
}

/** Browsers and proxies take addresses of this length. */
const urlLengthMax = 4096;

/** A form as the address of the same request; null for one that does not fit. */
function urlOf(form: Form): string | null {
  const pairs = Object.entries(form).flatMap(([name, values]) =>
    [values].flat().map((value): [string, string] => [name, value]),
  );
  const url = `/oauth2/auth?${new URLSearchParams(pairs).toString()}`;
  return url.length > urlLengthMax ? null : url;
}

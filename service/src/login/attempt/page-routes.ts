import type { FastifyRequest } from "fastify";
import type { Http } from "../../platform/http/http.ts";
import { Problem } from "../../platform/http/problems.ts";
import { Type } from "../../platform/http/schema.ts";
import type { LoginContext } from "../login-context.ts";
import { browserOf, leave, showLogin } from "../page/page-replies.ts";
import {
  getBrowserAttempt,
  giveUpGathering,
  restartLogin,
  showStaticCode,
} from "./browser-attempt.ts";
import { loginIdPattern, pagePathOf } from "./attempt.ts";
import { finishLogin } from "./finish.ts";
import { stateOf } from "./login-state.ts";
import type { StatusStreams } from "./status-stream.ts";

export const LoginParams = Type.Object({
  loginId: Type.String({ pattern: loginIdPattern }),
});

/** The page of a login and the forms on it; what they answer is a page or leads to one. */
export function pageRoutes(ctx: LoginContext, scope: Http): void {
  scope.get(
    "/oauth2/login/:loginId",
    { schema: { params: LoginParams, hide: true } },
    async (request, reply) => {
      const found = await getBrowserAttempt(ctx, request.params.loginId, browserOf(ctx, request));
      return showLogin(ctx, found, { request, reply });
    },
  );
  formRoutes(ctx, scope);
}

function formRoutes(ctx: LoginContext, scope: Http): void {
  const form = {
    schema: { params: LoginParams, hide: true },
    preHandler: async (request: FastifyRequest) => refuseForeignOrigin(ctx, request),
  };
  scope.post("/oauth2/login/:loginId/continue", form, async (request, reply) => {
    const { loginId } = request.params;
    const browser = browserOf(ctx, request);
    const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
    const state = stateOf(ctx, attempt);
    if (state.kind === "failed" && state.location !== undefined)
      return leave(reply, state.location);
    if (state.kind !== "approved") return leave(reply, pagePathOf(loginId));
    const released = await finishLogin(ctx, loginId, { browser, channel: "qr" });
    return leave(reply, released.location, released.cookies);
  });
  scope.post("/oauth2/login/:loginId/show-code", form, async (request, reply) => {
    await showStaticCode(ctx, request.params.loginId, browserOf(ctx, request));
    return leave(reply, pagePathOf(request.params.loginId));
  });
  scope.post("/oauth2/login/:loginId/give-up", form, async (request, reply) => {
    const { loginId } = request.params;
    const location = await giveUpGathering(ctx, loginId, browserOf(ctx, request));
    return leave(reply, location ?? pagePathOf(loginId));
  });
  scope.post("/oauth2/login/:loginId/restart", form, async (request, reply) => {
    const { loginId } = request.params;
    const next = await restartLogin(ctx, loginId, browserOf(ctx, request));
    // The page says why there is no other one, and has the way back.
    if (next === null) return leave(reply, pagePathOf(loginId));
    return leave(reply, pagePathOf(next.loginId), next.cookies);
  });
}

/** The routes that the page's script calls: JSON, errors in the envelope. */
export function statusRoutes(ctx: LoginContext, scope: Http, streams: StatusStreams): void {
  scope.post(
    "/oauth2/login/:loginId/finish",
    { schema: { params: LoginParams, hide: true } },
    async (request, reply) => {
      refuseForeignOrigin(ctx, request);
      const { location, cookies } = await finishLogin(ctx, request.params.loginId, {
        browser: browserOf(ctx, request),
        channel: "qr",
      });
      return reply.header("set-cookie", [...cookies]).send({ location });
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
      return reply.header("svc-now-ms", nowMs).send(state);
    },
  );
}

/**
 * A form of another site must not act here, whatever the browser makes of SameSite. `Sec-Fetch-Site` decides; older
 * browsers do not send it, and are judged by `Origin`.
 */
function refuseForeignOrigin(ctx: LoginContext, request: FastifyRequest): void {
  const { origin, "sec-fetch-site": site } = request.headers;
  const isOurs =
    site === undefined
      ? origin === undefined || origin === ctx.config.baseUrl
      : site === "same-origin";
  if (!isOurs) throw new Problem("forbidden", { message: "this form belongs to the login page" });
}

import { randomFillSync } from "node:crypto";
import type { TypeBoxTypeProvider } from "@fastify/type-provider-typebox";
import fastify, {
  type FastifyInstance,
  type FastifyReply,
  type FastifyRequest,
  type onRequestHookHandler,
  type RawServerDefault,
} from "fastify";
import type { FastifyBaseLogger } from "fastify";
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { answerBrokenRequest } from "./broken-requests.ts";
import type { Ctx } from "../context.ts";
import { answerEnvelopeError } from "./http-errors.ts";
import { parseQuery, queryFaultOf } from "./http-input.ts";
import { boundLargeAnswers } from "./large-answers.ts";
import { boundLargeBodies } from "./large-bodies.ts";
import { noteAnswers } from "./last-answers.ts";
import { lazySchemas } from "./lazy-schemas.ts";
import { closeLosslessly } from "./lossless-close.ts";
import { describeRoutes } from "./openapi.ts";
import { inWordsOfKyb, Problem } from "./problems.ts";
import { refusalOf } from "./refused-answers.ts";
import { parseBodies, allowMissingBodies, bodyBytesMax, checkBodyTypes } from "./request-bodies.ts";
import { countWhereNeeded } from "./text-length.ts";
import { answerUnknownRoutes } from "./unknown-routes.ts";

export type Http = FastifyInstance<
  RawServerDefault,
  IncomingMessage,
  ServerResponse,
  FastifyBaseLogger,
  TypeBoxTypeProvider
>;

/**
 * A request has to arrive within this time, body included, so that nobody holds a connection by sending a byte a
 * minute.
 */
const requestTimeoutMs = 60_000;
/** A silent connection is closed after this; longer than a long poll and than the pauses of a status stream. */
const silenceTimeoutMs = 120_000;
/** An idle connection is kept this long: longer than the 60 s for which proxies keep one by default. */
const keptConnectionMs = 72_000;
/** For how long a browser that was here once uses https alone. */
const httpsOnlySeconds = 365 * 86_400;
/** Long enough for every path value of the service, offer tokens included. */
const parameterLengthMax = 512;

/**
 * Builds the HTTP server with everything that holds for every route: request ids, strict parsing, error envelopes,
 * 404 and 405, metrics, OpenAPI. Slices add their routes in a scope of their own.
 */
export function createHttp(ctx: Ctx): Http {
  const http: Http = fastify({
    bodyLimit: bodyBytesMax,
    requestTimeout: requestTimeoutMs,
    connectionTimeout: silenceTimeoutMs,
    keepAliveTimeout: keptConnectionMs,
    routerOptions: { maxParamLength: parameterLengthMax, querystringParser: parseQuery },
    exposeHeadRoutes: false,
    requestIdHeader: false,
    genReqId: makeRequestId,
    forceCloseConnections: "idle",
    // Requests that arrive on open connections while the process drains are still answered: nothing that they need is
    // closed yet.
    return503OnClosing: false,
    clientErrorHandler: (error, socket) =>
      answerBrokenRequest(ctx, { error, socket, requestId: makeRequestId() }),
    // Node's own refusal has no body.
    http: { requireHostHeader: false },
    // Parts of the path and query that a client sent are never logged; the service writes its own line below.
    logger: false,
    // A path that cannot be decoded belongs to no route, so hooks do not run.
    frameworkErrors: (_, request, reply) => {
      beginAnswer(ctx, request, reply);
      const error = inWordsOfKyb(new Problem("malformed_request"));
      void answerEnvelopeError(ctx, { error, request, reply });
    },
    schemaController: { compilersFactory: lazySchemas },
    ajv: {
      customOptions: {
        coerceTypes: false,
        removeAdditional: false,
        useDefaults: false,
        allErrors: false,
        discriminator: true,
        // Tests validate the schemas; here it would take the first request of a process 25 ms.
        validateSchema: false,
      },
      plugins: [countWhereNeeded],
    },
  }).withTypeProvider<TypeBoxTypeProvider>();
  parseBodies(ctx, http);
  http.setErrorHandler((error, request, reply) =>
    answerEnvelopeError(ctx, { error, request, reply }),
  );
  http.addHook("onRequest", (request, reply, done) => {
    beginAnswer(ctx, request, reply);
    done(hostFaultOf(request) ?? undefined);
  });
  refuseUnreadableQueries(http);
  allowMissingBodies(http);
  checkBodyTypes(http);
  boundLargeBodies(ctx, http, bodyBytesMax);
  boundLargeAnswers(ctx, http);
  answerUnknownRoutes(http);
  describeRoutes(http, ctx);
  prepareServer(http.server);
  return http;
}

/** RFC 9112 section 3.2: HTTP/1.1 has a `Host`, and no request has two. */
function hostFaultOf({ raw: { httpVersion, rawHeaders } }: FastifyRequest): Problem | null {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at];
    if (name?.length === 4 && name.toLowerCase() === "host") hosts += 1;
  }
  return hosts > 1 || (hosts === 0 && httpVersion === "1.1")
    ? new Problem("malformed_request")
    : null;
}

function prepareServer(server: Server): void {
  noteAnswers(server);
  closeLosslessly(server);
  ignoreExpectations(server);
}

/**
 * RFC 9110 section 10.1.1: expectations other than 100-continue may be ignored; Node would refuse them without a body.
 */
function ignoreExpectations(server: Server): void {
  server.on("checkExpectation", (request, response) => {
    server.emit("request", request, response);
  });
}

const requestIdBytes = 16;
const requestIdPool = Buffer.alloc(requestIdBytes * 256);
let requestIdAt = requestIdPool.length;

/** Every request takes one, so the random bytes are drawn for many at once. */
function makeRequestId(): string {
  if (requestIdAt === requestIdPool.length) {
    randomFillSync(requestIdPool);
    requestIdAt = 0;
  }
  const end = requestIdAt + requestIdBytes;
  const id = `req_${requestIdPool.toString("hex", requestIdAt, end)}`;
  requestIdAt = end;
  return id;
}

/** Added after the scope's own hooks, which ask who calls: 401 comes before 400 (decisions section 1, Errors). */
function refuseUnreadableQueries(http: Http): void {
  http.addHook("onRoute", (route) => {
    const own = [route.onRequest ?? []].flat();
    route.onRequest = [...own, refuseUnreadableQuery];
  });
}

const refuseUnreadableQuery: onRequestHookHandler = (request, _reply, done) => {
  done(queryFaultOf(request.query) ?? undefined);
};

/**
 * Headers of every answer, including those to requests that no route matches. Most answers are private, so a cacheable
 * one says so itself.
 */
function beginAnswer(ctx: Ctx, request: FastifyRequest, reply: FastifyReply): void {
  reportAtEnd(ctx, request, reply);
  void reply
    .header("x-request-id", request.id)
    .header("x-content-type-options", "nosniff")
    .header("cache-control", "no-store");
  // Otherwise a network could answer a browser that asks by http in our place (RFC 6797). In `dev` the host is often
  // `localhost`, which has other servers too.
  if (ctx.config.profile === "production")
    void reply.header("strict-transport-security", `max-age=${httpsOnlySeconds}`);
}

/**
 * The status in log and metrics if the connection was closed before an answer. It is not one of HTTP, and is never
 * sent.
 */
const statusOfNone = 499;

/** Reports a request to log and metrics, even if its caller did not wait: it may have taken effect. */
function reportAtEnd(ctx: Ctx, request: FastifyRequest, reply: FastifyReply): void {
  const startedMs = performance.now();
  reply.raw.on("close", () => {
    const durationMs = performance.now() - startedMs;
    const { id: requestId, method } = request;
    const route = request.routeOptions.url ?? "unknown";
    const status = reply.sent ? reply.statusCode : statusOfNone;
    ctx.metrics.httpRequestDuration.observe(
      { route, method, status: String(status) },
      durationMs / 1000,
    );
    const shownMs = Math.round(durationMs * 100) / 100;
    const isProbed = request.routeOptions.logLevel === "debug" && status < 400;
    ctx.log[isProbed ? "debug" : "info"](
      { requestId, method, route, status, reason: refusalOf(reply), durationMs: shownMs },
      "request",
    );
  });
}

import type { IncomingHttpHeaders } from "node:http";
import type { onRequestHookHandler, preValidationHookHandler } from "fastify";
import type { Ctx } from "../context.ts";
import { createBodyTurns } from "./body-turns.ts";
import { callerAddressOf, limitNetworkOf } from "./client-address.ts";
import type { Http } from "./http.ts";
import { parseForm, parseJson, refuseCoding } from "./http-input.ts";
import { Problem } from "./problems.ts";

/** Bytes of an ordinary body (decisions section 1); a route that takes more says so in `bodyLimit`. */
export const bodyBytesMax = 64 * 1024;

/**
 * Bodies are parsed as they come, large ones in turns: parsing one, and what its route does with it, may keep the process
 * busy for tenths of a second.
 */
export function parseBodies(ctx: Ctx, http: Http): void {
  const takeTurn = createBodyTurns();
  http.removeAllContentTypeParsers();
  http.addContentTypeParser<Buffer>(
    "application/json",
    { parseAs: "buffer" },
    (request, body, done) => {
      const parse = (): unknown => {
        refuseCoding(request.headers["content-encoding"]);
        return body.length === 0 ? null : parseJson(body);
      };
      if (body.length <= bodyBytesMax) settle(parse, done);
      else takeTurn(limitNetworkOf(callerAddressOf(ctx, request)), () => settle(parse, done));
    },
  );
  http.addContentTypeParser(
    "application/x-www-form-urlencoded",
    { parseAs: "string" },
    (request, body, done) =>
      settle(() => {
        refuseCoding(request.headers["content-encoding"]);
        return parseForm(String(body));
      }, done),
  );
}

function settle(parse: () => unknown, done: (error: Error | null, body?: unknown) => void): void {
  try {
    done(null, parse());
  } catch (error) {
    done(error instanceof Error ? error : new Error("unreadable body"));
  }
}

/**
 * If no member of a body is required, the body may be left out. Routes that take forms report themselves what is
 * missing.
 */
export function allowMissingBodies(http: Http): void {
  http.addHook("onRoute", (route) => {
    const body = route.schema?.body as { type?: string; required?: string[] } | undefined;
    if (body?.type !== "object" || (body.required ?? []).length > 0) return;
    if (route.schema?.consumes !== undefined) return;
    const own = [route.preValidation ?? []].flat();
    route.preValidation = [fillBody, ...own];
  });
}

/** A body that was left out is one without members. */
export const fillBody: preValidationHookHandler = (request, _reply, done) => {
  request.body ??= {};
  done();
};

/**
 * API and wallet routes accept only JSON; forms are for the login's routes. Any site can make a browser post a form, so
 * a wallet route that took one would bypass CORS. If nothing is sent, the body is missing, whatever content type is
 * named.
 */
export function checkBodyTypes(http: Http): void {
  http.addHook("onRoute", (route) => {
    const own = [route.onRequest ?? []].flat();
    if (route.schema?.consumes !== undefined) route.onRequest = [...own, ignoreOtherTypeOfNothing];
    if (!/^\/(?:api|w)\//.test(route.url) || route.method === "GET") return;
    route.onRequest = [...own, ignoreTypeOfNothing, refuseOtherTypes];
  });
}

/** An empty form stays a form: its refusal names the missing parameter. */
const ignoreOtherTypeOfNothing: onRequestHookHandler = ({ raw: { headers } }, _reply, done) => {
  const isForm = /^application\/x-www-form-urlencoded *(?:;|$)/i.test(
    headers["content-type"] ?? "",
  );
  if (!isForm && isWithoutBody(headers)) delete headers["content-type"];
  done();
};

/** Some clients name a type even if they send nothing, curl and .NET among them: that is a missing body. */
const ignoreTypeOfNothing: onRequestHookHandler = ({ raw: { headers } }, _reply, done) => {
  if (isWithoutBody(headers)) delete headers["content-type"];
  done();
};

const isWithoutBody = (headers: IncomingHttpHeaders): boolean =>
  headers["transfer-encoding"] === undefined && (headers["content-length"] ?? "0") === "0";

const refuseOtherTypes: onRequestHookHandler = ({ raw: { headers } }, _reply, done) => {
  const isOther =
    !isWithoutBody(headers) && !/^application\/json *(?:;|$)/i.test(headers["content-type"] ?? "");
  const message = "the body must be application/json";
  done(isOther ? new Problem("unsupported_media_type", { message }) : undefined);
};

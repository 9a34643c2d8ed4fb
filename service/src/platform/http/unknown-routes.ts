import type { FastifyReply, FastifyRequest } from "fastify";
import { hasOAuthErrors, oauthProblemOf } from "./http-errors.ts";
import type { Http } from "./http.ts";
import { inWordsOfKyb, Problem } from "./problems.ts";

/** 404 in the envelope, or where the path exists under other methods 405 with `Allow`, in the form of its errors. */
export function answerUnknownRoutes(http: Http): void {
  const known: { pattern: RegExp; methods: string[]; isOAuth: boolean }[] = [];
  http.addHook("onRoute", function note({ url, method }) {
    // Preflights are answered under many paths that have no GET.
    if (method === "OPTIONS") return;
    const source = url.split("/").map(patternOf).join("/");
    const pattern = new RegExp(`^${source}$`);
    known.push({ pattern, methods: [method].flat(), isOAuth: hasOAuthErrors(this) });
  });
  const refuse = (request: FastifyRequest, reply: FastifyReply): Error => {
    const path = request.url.split("?", 1)[0] ?? "";
    const matching = known.filter(({ pattern }) => pattern.test(path));
    const allowed = new Set(matching.flatMap(({ methods }) => methods));
    const isUnknown = allowed.size === 0 || allowed.has(request.method);
    const methods = [...allowed].toSorted().join(", ");
    if (!isUnknown) void reply.header("allow", methods);
    const refusal = isUnknown
      ? new Problem("route_not_found")
      : new Problem("method_not_allowed", { message: `this path takes ${methods}` });
    if (matching.some(({ isOAuth }) => isOAuth)) return oauthProblemOf(refusal) ?? refusal;
    return path.startsWith("/api/v1/kyb/") ? inWordsOfKyb(refusal) : refusal;
  };
  // Before a body is read, since no route needs it.
  http.addHook("onRequest", (request, reply, done) => {
    done(request.is404 ? refuse(request, reply) : undefined);
  });
}

/** The pattern that a part of a route's path matches. */
function patternOf(part: string): string {
  if (part === "*") return ".*";
  return part.startsWith(":") ? "[^/]+" : RegExp.escape(part);
}

import type { FastifyReply, FastifyRequest } from "fastify";
import type { Client } from "../../accounts/index.ts";
import { type Form, valueOf } from "../../platform/http/http-input.ts";
import type { Http } from "../../platform/http/http.ts";
import { clientIdOfBasic } from "../client/client-authentication.ts";
import { listOrigins } from "./origin-store.ts";
import type { TokenContext } from "../token-context.ts";
import { userinfoPath } from "./userinfo.ts";

/** How long a registered origin is accepted without reading the list again; a new one is seen sooner. */
const originsLifetimeMs = 30_000;
/** Unregistered origins make the list be read no more often than this. */
const rereadMs = 1_000;
const preflightSeconds = 600;

/** The origins of all clients, for preflights, which name no client (decisions section 2, CORS). */
export interface RegisteredOrigins {
  has(origin: string): Promise<boolean>;
}

export function createRegisteredOrigins(ctx: TokenContext): RegisteredOrigins {
  let origins: ReadonlySet<string> = new Set();
  let readAtMs = -Infinity;
  let reading: Promise<void> | null = null;
  const read = async (): Promise<void> => {
    const startedAtMs = ctx.clock.nowMs();
    try {
      origins = new Set(await listOrigins(ctx.db));
      readAtMs = startedAtMs;
    } finally {
      reading = null;
    }
  };
  return {
    async has(origin) {
      const ageMs = ctx.clock.nowMs() - readAtMs;
      const isOld = ageMs > originsLifetimeMs || (!origins.has(origin) && ageMs > rereadMs);
      if (isOld) await (reading ??= read());
      return origins.has(origin);
    },
  };
}

/**
 * Whether the origin is the client's. One that is only another client's in the cache may have become this client's
 * since; any other is not worth a query.
 */
async function isOwnOrigin(
  { clients }: TokenContext,
  { client, origin, origins }: { client: Client; origin: string; origins: RegisteredOrigins },
): Promise<boolean> {
  if (hasOrigin(client, origin)) return true;
  if (!(await origins.has(origin))) return false;
  return (await clients.findFitting(client, (each) => hasOrigin(each, origin))) !== null;
}

/** Whether the client has a redirect URI on this origin. */
function hasOrigin(client: Client, origin: string): boolean {
  return client.redirectUris.some(
    (uri) => /^https?:/.test(uri) && URL.parse(uri)?.origin === origin,
  );
}

/**
 * Opens these paths to scripts, never with credentials. Preflights are open to the origins of every client. An answer,
 * error or not, is only for the origins of the client that the call names. A refused call that names no known client,
 * or could not be parsed, may be read from the origins of every client.
 */
export function allowClientOrigins(
  ctx: TokenContext,
  scope: Http,
  { paths, origins }: { paths: readonly string[]; origins: RegisteredOrigins },
): void {
  const isOpen = ({ method, routeOptions }: FastifyRequest): boolean =>
    method !== "OPTIONS" && paths.includes(routeOptions.url ?? "");
  const mayNameClient = new WeakSet<FastifyRequest>();
  scope.addHook("preValidation", async (request, reply) => {
    if (!isOpen(request)) return;
    void reply.header("vary", "Origin");
    const { origin } = request.headers;
    if (origin === undefined) return;
    // Until the client is known: if that look-up fails with the database, the hook for errors must not wait for the
    // origins as well.
    mayNameClient.add(request);
    const client = await findNamedClient(ctx, request);
    if (client === null) mayNameClient.delete(request);
    else if (await isOwnOrigin(ctx, { client, origin, origins })) allow(reply, origin);
  });
  scope.addHook("onError", async (request, reply) => {
    if (!isOpen(request) || mayNameClient.has(request)) return;
    void reply.header("vary", "Origin");
    const { origin } = request.headers;
    if (origin !== undefined && (await origins.has(origin).catch(() => false)))
      allow(reply, origin);
  });
  for (const path of paths) preflightRoute(scope, path, origins);
}

async function findNamedClient(ctx: TokenContext, request: FastifyRequest): Promise<Client | null> {
  const clientId = clientIdOf(request);
  return clientId === undefined ? null : ctx.clients.find(clientId);
}

function preflightRoute(scope: Http, path: string, origins: RegisteredOrigins): void {
  scope.options(path, { schema: { hide: true } }, async (request, reply) => {
    const { origin } = request.headers;
    void reply.header("vary", "Origin");
    if (origin !== undefined && (await origins.has(origin))) {
      allow(reply, origin);
      void reply.headers({
        "access-control-allow-methods": path === userinfoPath ? "GET, POST" : "POST",
        "access-control-allow-headers": "Authorization, Content-Type, DPoP",
        "access-control-max-age": String(preflightSeconds),
      });
    }
    return reply.code(204).send();
  });
}

function allow(reply: FastifyReply, origin: string): void {
  void reply.headers({
    "access-control-allow-origin": origin,
    "access-control-expose-headers": "WWW-Authenticate, Retry-After, X-Request-Id",
  });
}

/** The client that a call names, without proof: it only decides who may read the answer, not what the answer is. */
function clientIdOf(request: FastifyRequest): string | undefined {
  const form =
    typeof request.body === "object" && request.body !== null ? (request.body as Form) : {};
  const { authorization = "" } = request.headers;
  const [, scheme = "", credentials = ""] = /^(\w+) +(\S+)$/.exec(authorization) ?? [];
  if (scheme.toLowerCase() === "basic") return clientIdOfBasic(authorization);
  const token = scheme === "" ? valueOf(form, "access_token") : credentials;
  // Userinfo is for the token's own client, whichever client the form names.
  const named = request.routeOptions.url === userinfoPath ? undefined : valueOf(form, "client_id");
  return named ?? claimedClient(token ?? valueOf(form, "client_assertion"));
}

function claimedClient(token: string | undefined): string | undefined {
  try {
    const text = Buffer.from(token?.split(".")[1] ?? "", "base64url").toString("utf8");
    const { client_id: clientId, iss } = JSON.parse(text) as Record<string, unknown>;
    return [clientId, iss].find((value) => typeof value === "string");
  } catch {
    return undefined;
  }
}

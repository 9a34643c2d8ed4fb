import type { FastifyReply, FastifyRequest } from "fastify";
import { callerAddressOf } from "../platform/http/client-address.ts";
import type { Ctx } from "../platform/context.ts";
import type { Http } from "../platform/http/http.ts";
import { Problem } from "../platform/http/problems.ts";
import { limitHeaders, refuseBeyond } from "../platform/http/limit-refusal.ts";
import { type Limit } from "../platform/rate-limit.ts";
import { type ApiKey, looksLikeApiKey } from "./api-key.ts";
import type { ApiKeys } from "./api-key-lookup.ts";

/** The context of the API's routes, with the key lookup of this process. */
export interface AccountsContext extends Ctx {
  readonly apiKeys: ApiKeys;
}

const callingKeys = new WeakMap<FastifyRequest, ApiKey>();

declare module "fastify" {
  interface FastifyContextConfig {
    /** True for a POST that creates nothing, which counts against the limit of reads. */
    readonly onlyReads?: boolean;
  }
}

/** Bursts of this many seconds' worth (decisions section 8, Rate limits). */
const burstSeconds = 4;

/**
 * The rate limit of a key of a client domain or issuer.
 *
 * @param address the caller's, which exempts loopback; absent if nobody is exempt
 */
export function limitOfKey(perSecond: number, address?: string): Limit {
  return {
    perSecond,
    burst: perSecond * burstSeconds,
    ...(address !== undefined && { address }),
  };
}

/**
 * Guards every route of this scope: an API key in the `Authorization` header, none in the URL, and the rate limit of
 * that key, `read` for GET, HEAD and routes that say `onlyReads`, `create` for the rest. The routes find out who calls
 * with {@link apiKeyOf}. No route behind this guard ever answers with CORS headers, since a key has no place in a
 * browser, and no cache may store its answers.
 */
export function requireApiKey(ctx: AccountsContext, scope: Http): void {
  scope.addHook("onRequest", async (request, reply) => {
    refuseKeyInUrl(request.url);
    const key = await ctx.apiKeys.authenticate(request.headers.authorization);
    callingKeys.set(request, key);
    await limitKey(ctx, key, { request, reply });
  });
}

/** The key with which a route behind {@link requireApiKey} is called. */
export function apiKeyOf(request: FastifyRequest): ApiKey {
  const key = callingKeys.get(request);
  if (key === undefined) throw new Error("the route is not behind requireApiKey");
  return key;
}

/**
 * URLs are logged everywhere on their way: a key that was sent in one is no longer a secret.
 *
 * @throws {Problem} apikey_invalid
 */
export function refuseKeyInUrl(url: string): void {
  let text = url;
  try {
    text = decodeURIComponent(url);
  } catch {
    // A text that cannot be decoded is examined as it came.
  }
  if (looksLikeApiKey(text))
    throw new Problem("apikey_invalid", {
      message:
        "an API key in the URL is refused: revoke it, and send the new one in the Authorization header",
    });
}

async function limitKey(
  ctx: Ctx,
  key: ApiKey,
  { request, reply }: { request: FastifyRequest; reply: FastifyReply },
): Promise<void> {
  const { onlyReads = false } = request.routeOptions.config;
  const isRead = request.method === "GET" || request.method === "HEAD" || onlyReads;
  const own = isRead ? key.limits.readsPerSecond : key.limits.createsPerSecond;
  const perSecond = own ?? (isRead ? ctx.config.readsPerSecond : ctx.config.createsPerSecond);
  // A limit of the organization's own was set on purpose, so it counts on loopback too.
  const limit = limitOfKey(perSecond, own === null ? callerAddressOf(ctx, request) : undefined);
  const taken = await ctx.limits.take(`key:${isRead ? "read" : "create"}:${key.id}`, limit);
  void reply.headers(limitHeaders(taken, limit));
  if (taken.ok) return;
  const { retryAfterSeconds } = taken;
  refuseBeyond(ctx, isRead ? "key-reads" : "key-creations", { ...limit, retryAfterSeconds });
}

import type { Ctx } from "../context.ts";
import type { Limit, Taken } from "../rate-limit.ts";
import { Problem } from "./problems.ts";

/** A limit as callers are told of it; without a rate, it limits how many there may be at the same time. */
type Policy = Pick<Limit, "burst"> & Partial<Pick<Limit, "perSecond">>;

/** `RateLimit` and `RateLimit-Policy` of draft-ietf-httpapi-ratelimit-headers-10, and `Retry-After` with a refusal. */
export function limitHeaders(taken: Taken, { burst, perSecond }: Policy): Record<string, string> {
  const window = perSecond === undefined ? "" : `;w=${fillSecondsOf({ burst, perSecond })}`;
  const policy = { "ratelimit-policy": `"default";q=${burst}${window}` };
  if (taken.ok) return { ...policy, ratelimit: `"default";r=${taken.remaining}` };
  const wait = taken.retryAfterSeconds;
  return { ...policy, ratelimit: `"default";r=0;t=${wait}`, "retry-after": String(wait) };
}

/** Whole seconds in which a bucket fills. The quotient of 11 and 11 a minute is a little more than 60. */
function fillSecondsOf({ burst, perSecond }: Pick<Limit, "burst" | "perSecond">): number {
  return Math.ceil(Number((burst / perSecond).toFixed(6)));
}

/**
 * Takes the tokens of one call (one, unless `limit.cost` says otherwise), and refuses the call if there are none.
 *
 * @throws {Problem} rate_limited, with the headers of {@link limitHeaders}
 */
export async function takeOrRefuse(
  ctx: Pick<Ctx, "limits" | "metrics">,
  name: string,
  limit: Limit & { readonly cost?: number },
): Promise<void> {
  const taken = await ctx.limits.take(name, limit, limit.cost);
  if (taken.ok) return;
  // The first two parts are the kind of limit, the rest says whom it affects.
  const kind = name.split(":", 2).join("-");
  refuseBeyond(ctx, kind, { ...limit, retryAfterSeconds: taken.retryAfterSeconds });
}

/**
 * Refuses a call that is beyond a limit, and counts the refusal.
 *
 * @param kind the kind of limit, as operators see it; it names nobody
 * @throws {Problem} rate_limited, with the headers of {@link limitHeaders}
 */
export function refuseBeyond(
  ctx: Pick<Ctx, "metrics">,
  kind: string,
  beyond: Policy & { readonly retryAfterSeconds: number; readonly message?: string },
): never {
  const { retryAfterSeconds, message } = beyond;
  ctx.metrics.refusals.inc({ limit: kind });
  throw new Problem("rate_limited", {
    retryAfterSeconds,
    headers: limitHeaders({ ok: false, retryAfterSeconds }, beyond),
    ...(message === undefined ? {} : { message }),
  });
}

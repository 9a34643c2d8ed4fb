import { forgetOldest } from "../../platform/forget-oldest.ts";
import { limitNetworkOf } from "../../platform/http/client-address.ts";
import { refuseBeyond } from "../../platform/http/limit-refusal.ts";
import { failedSecretLimit } from "../../platform/rate-limit.ts";
import type { TokenContext } from "../token-context.ts";

/** Beyond this, the pair that was blocked first is forgotten: its next failure blocks it again. */
const blockedMax = 10_000;

/**
 * Unix milliseconds until when a pair of client and network is blocked, as far as this process knows from its own
 * calls. By the limiter, since a process has one of it, and many copies of its context.
 */
const blockedByLimiter = new WeakMap<TokenContext["limits"], Map<string, number>>();

function blockedOf(ctx: TokenContext): Map<string, number> {
  const known = blockedByLimiter.get(ctx.limits) ?? new Map<string, number>();
  blockedByLimiter.set(ctx.limits, known);
  return known;
}

function nameOf(clientId: string, address: string): string {
  return `secret:${clientId}:${limitNetworkOf(address)}`;
}

/** Refuses before the secret is looked at: after too many wrong guesses, a right one must not be recognisable. */
export function refuseBlocked(ctx: TokenContext, clientId: string, address: string): void {
  const blocked = blockedByLimiter.get(ctx.limits);
  if (blocked === undefined || blocked.size === 0) return;
  const name = nameOf(clientId, address);
  const untilMs = blocked.get(name);
  if (untilMs === undefined) return;
  const leftMs = untilMs - ctx.clock.nowMs();
  if (leftMs > 0) refuse(ctx, Math.ceil(leftMs / 1000));
  blocked.delete(name);
}

/** Counts a wrong secret or assertion; after the last one that is allowed the pair is blocked. @throws {Problem} rate_limited */
export async function countFailure(
  ctx: TokenContext,
  clientId: string,
  address: string,
): Promise<void> {
  const name = nameOf(clientId, address);
  const taken = await ctx.limits.take(name, { ...failedSecretLimit, address });
  if (taken.ok && taken.remaining > 0) return;
  const waitSeconds = taken.ok ? 1 / failedSecretLimit.perSecond : taken.retryAfterSeconds;
  const blocked = blockedOf(ctx);
  blocked.set(name, ctx.clock.nowMs() + waitSeconds * 1000);
  forgetOldest(blocked, blockedMax);
  if (!taken.ok) refuse(ctx, waitSeconds);
}

function refuse(ctx: TokenContext, retryAfterSeconds: number): never {
  refuseBeyond(ctx, "secret", { ...failedSecretLimit, retryAfterSeconds });
}

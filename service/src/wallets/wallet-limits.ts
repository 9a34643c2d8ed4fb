import type { FastifyRequest } from "fastify";
import { callerAddressOf, limitNetworkOf } from "../platform/http/client-address.ts";
import type { Ctx } from "../platform/context.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import { perMinute } from "../platform/rate-limit.ts";

/**
 * Anybody can make any number of identities, so calls of wallets are counted by network: as many as logins may be
 * started, each kind counted separately.
 *
 * @throws {Problem} rate_limited
 */
export async function limitWallet(
  ctx: Ctx,
  request: FastifyRequest,
  kind: "address" | "mailbox" | "push" | "relay",
): Promise<void> {
  const address = callerAddressOf(ctx, request);
  const limit = perMinute(ctx.config.loginsPerAddressMinute, address);
  await takeOrRefuse(ctx, `wallet:${kind}:${limitNetworkOf(address)}`, limit);
}

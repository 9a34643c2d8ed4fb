import type { FastifyRequest } from "fastify";
import { callerAddressOf, limitNetworkOf } from "../platform/http/client-address.ts";
import type { Ctx } from "../platform/context.ts";
import { perMinute, takeOrRefuse } from "../platform/rate-limit.ts";

/**
 * Anybody can make identities without end, so what wallets do is counted by network: as often as logins start, each
 * kind on its own.
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

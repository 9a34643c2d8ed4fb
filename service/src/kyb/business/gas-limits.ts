import type { FastifyRequest } from "fastify";
import { callerAddressOf, limitNetworkOf } from "../../platform/http/client-address.ts";
import { takeOrRefuse } from "../../platform/rate-limit.ts";
import type { KybContext } from "../kyb-context.ts";

/** Of one network in an hour, foundings and proposals together. */
const perHour = 60;

/**
 * Limits calls that make the service pay for a transaction that nobody is charged for. Counted by network, because
 * anybody can make any number of identities, and a business of one member decides on its own.
 *
 * @throws {Problem} rate_limited
 */
export async function limitGas(ctx: KybContext, request: FastifyRequest): Promise<void> {
  const address = callerAddressOf(ctx, request);
  const limit = { perSecond: perHour / 3600, burst: perHour, address };
  await takeOrRefuse(ctx, `business:gas:${limitNetworkOf(address)}`, limit);
}

import type { FastifyRequest } from "fastify";
import { callerAddressOf, limitNetworkOf } from "../../platform/http/client-address.ts";
import { takeOrRefuse } from "../../platform/http/limit-refusal.ts";
import type { KybContext } from "../kyb-context.ts";

/** Foundings and proposals of one network in an hour, together. */
const perHour = 60;

/**
 * Limits calls that make the service pay for a transaction without charging anybody. Per network, because anybody can
 * make any number of identities, and a business with one member decides on its own.
 *
 * @throws {Problem} rate_limited
 */
export async function limitGas(ctx: KybContext, request: FastifyRequest): Promise<void> {
  const address = callerAddressOf(ctx, request);
  const limit = { perSecond: perHour / 3600, burst: perHour, address };
  await takeOrRefuse(ctx, `business:gas:${limitNetworkOf(address)}`, limit);
}

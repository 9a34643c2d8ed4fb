import type { Client } from "../../accounts/index.ts";
import { limitNetworkOf } from "../../platform/http/client-address.ts";
import { takeOrRefuse } from "../../platform/http/limit-refusal.ts";
import { type Limit, perMinute } from "../../platform/rate-limit.ts";
import type { LoginContext } from "../login-context.ts";

/** A limit of the organization's own was set on purpose, so it counts on loopback too. */
const limitOf = (
  ctx: LoginContext,
  { loginsPerClientMinute: own }: Client,
  address: string,
): Limit => (own === null ? perMinute(ctx.config.loginsPerClientMinute, address) : perMinute(own));

/** How many logins one address starts (decisions section 8). @throws {Problem} rate_limited */
export async function limitAddress(ctx: LoginContext, address: string): Promise<void> {
  const limit = perMinute(ctx.config.loginsPerAddressMinute, address);
  await takeOrRefuse(ctx, `login:address:${limitNetworkOf(address)}`, limit);
}

/** How many logins are started at one client. @throws {Problem} rate_limited */
export async function limitClient(
  ctx: LoginContext,
  client: Client,
  address: string,
): Promise<void> {
  await takeOrRefuse(ctx, `login:client:${client.id}`, limitOf(ctx, client, address));
}

/**
 * How many requests are pushed for one client, counted apart from the logins that follow. Anybody can push for a client
 * that has nothing to prove itself by, so there the address counts too.
 *
 * @throws {Problem} rate_limited
 */
export async function limitPushes(
  ctx: LoginContext,
  client: Client,
  address: string,
): Promise<void> {
  if (client.authenticationMethod === "none") await limitAddress(ctx, address);
  await takeOrRefuse(ctx, `push:client:${client.id}`, limitOf(ctx, client, address));
}

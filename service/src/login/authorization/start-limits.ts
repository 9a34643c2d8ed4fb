import type { Client } from "../../accounts/index.ts";
import { limitNetworkOf } from "../../platform/http/client-address.ts";
import { perMinute, takeOrRefuse } from "../../platform/rate-limit.ts";
import type { LoginContext } from "../login-context.ts";

const loginsOf = (ctx: LoginContext, { loginsPerClientMinute }: Client): number =>
  loginsPerClientMinute ?? ctx.config.loginsPerClientMinute;

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
  const limit = perMinute(loginsOf(ctx, client), address);
  await takeOrRefuse(ctx, `login:client:${client.id}`, limit);
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
  const limit = perMinute(loginsOf(ctx, client), address);
  await takeOrRefuse(ctx, `push:client:${client.id}`, limit);
}

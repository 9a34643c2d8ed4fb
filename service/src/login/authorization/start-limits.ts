import type { Client } from "../../accounts/index.ts";
import { limitNetworkOf } from "../../platform/client-address.ts";
import { type Limit, takeOrRefuse } from "../../platform/rate-limit.ts";
import type { LoginContext } from "../login-context.ts";

function perMinute(count: number, address: string): Limit {
  return { perSecond: count / 60, burst: count, address };
}

/** Contracts are asked by all callers together at a bounded rate; one login or order does not take it from the others. */
const contractLimit: Limit = { perSecond: 10 / 60, burst: 10 };

/** Nor does one address, however many of them it has. */
const contractsPerAddressMinute = 60;

/**
 * How often contracts are asked about signatures for one address, and for one subject if there is one.
 *
 * @param asked.subject what is signed for, with its kind: `login:<id>`
 * @throws {Problem} rate_limited
 */
export async function limitContractSignatures(
  ctx: Pick<LoginContext, "limits" | "metrics">,
  { subject, callerAddress }: { subject?: string; callerAddress: string },
): Promise<void> {
  if (subject !== undefined) await takeOrRefuse(ctx, `signature:${subject}`, contractLimit);
  const limit = perMinute(contractsPerAddressMinute, callerAddress);
  await takeOrRefuse(ctx, `signature:address:${limitNetworkOf(callerAddress)}`, limit);
}

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
  const limit = perMinute(ctx.config.loginsPerClientMinute, address);
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
  const limit = perMinute(ctx.config.loginsPerClientMinute, address);
  await takeOrRefuse(ctx, `push:client:${client.id}`, limit);
}

import { limitNetworkOf } from "../platform/http/client-address.ts";
import { perMinute, takeOrRefuse } from "../platform/rate-limit.ts";
import type { LoginContext } from "./login-context.ts";

/** All callers together ask contracts at a bounded rate: one login or order must not use it up for the others. */
const perSubjectMinute = 10;

/** Nor must one address, however many logins and orders it has. */
const perAddressMinute = 60;

/**
 * How often contracts are asked about signatures for one address, and for one subject if there is one.
 *
 * @param asked.subject what is signed for, with its kind: `login:<id>`
 * @throws {Problem} rate_limited
 */
export async function limitContractSignatures(
  ctx: Pick<LoginContext, "limits" | "metrics">,
  asked: { subject?: string; callerAddress: string },
): Promise<void> {
  const { subject, callerAddress: address } = asked;
  if (subject !== undefined)
    await takeOrRefuse(ctx, `signature:${subject}`, perMinute(perSubjectMinute, address));
  const network = limitNetworkOf(address);
  await takeOrRefuse(ctx, `signature:address:${network}`, perMinute(perAddressMinute, address));
}

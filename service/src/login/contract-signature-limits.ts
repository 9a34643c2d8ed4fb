import { limitNetworkOf } from "../platform/http/client-address.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import { perMinute } from "../platform/rate-limit.ts";
import type { LoginContext } from "./login-context.ts";

/** The chain is asked at a bounded rate for all callers together; one login or order must not use that rate up. */
const perSubjectMinute = 10;

/** Nor must the callers of one network, however many logins and orders they have. */
const perAddressMinute = 60;

/**
 * Limits how often contracts are asked about signatures: for the caller's network, and for the subject if one is given.
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

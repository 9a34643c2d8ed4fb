import { misconfigured } from "./merchant-error.ts";

/** In the year 5138. `Date.now()`, in milliseconds, is greater, and by it everything would have expired. */
const secondsMax = 100_000_000_000;

/** Accepts only Unix seconds as a time. @throws {MerchantError} configuration_invalid, `now` */
export function checkNow(now: number): void {
  if (!Number.isFinite(now) || now >= secondsMax) throw misconfigured("now");
}

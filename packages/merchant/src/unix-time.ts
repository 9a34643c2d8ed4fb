import { misconfigured } from "./merchant-error.ts";

/** In the year 5138. `Date.now()` is greater: milliseconds passed by mistake would make everything look expired. */
const secondsMax = 100_000_000_000;

/** Unix seconds by this machine's clock. */
export function machineTime(): number {
  return Math.floor(Date.now() / 1000);
}

/**
 * Checks a time that a caller may have given; the default is this machine's.
 *
 * @throws {MerchantError} configuration_invalid, `now`, for anything but Unix seconds
 */
export function readNow(given: number | undefined): number {
  const now = given ?? machineTime();
  if (!Number.isFinite(now) || now >= secondsMax) throw misconfigured("now");
  return now;
}

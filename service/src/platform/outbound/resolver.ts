import assert from "node:assert/strict";
import { Resolver as DnsResolver } from "node:dns/promises";
import { isPublicName } from "./address-policy.ts";
import { orAborted, timeoutMsMax } from "./time-limit.ts";

/**
 * Looks names up. A rejected promise means that the name was not found or the query not answered; the signal ends at
 * the request's time limit.
 */
export interface Resolver {
  /** All IPv4 and IPv6 addresses of the name. */
  addresses(name: string, signal: AbortSignal): Promise<readonly string[]>;
  /** The TXT records, each joined from its parts. */
  txt(name: string, signal: AbortSignal): Promise<readonly string[]>;
}

const dnsTimeoutMs = 2_000;
const dnsTries = 2;

/**
 * Asks the name servers directly. `getaddrinfo` is not used: it would read /etc/hosts, cannot be
 * cancelled, and runs in the pool of four threads that slow name servers could occupy.
 */
export const systemResolver: Resolver = {
  async addresses(name, signal) {
    const dns = openDns(signal);
    const [ipv4, ipv6] = await Promise.allSettled([dns.resolve4(name), dns.resolve6(name)]);
    return [ipv4, ipv6].flatMap((each) => (each.status === "fulfilled" ? each.value : []));
  },
  async txt(name, signal) {
    const records = await openDns(signal).resolveTxt(name);
    return records.map((parts) => parts.join(""));
  },
};

function openDns(signal: AbortSignal): DnsResolver {
  const dns = new DnsResolver({ timeout: dnsTimeoutMs, tries: dnsTries });
  signal.addEventListener("abort", () => dns.cancel(), { once: true });
  return dns;
}

/** More records than any proof needs; one answer over TCP could hold thousands. */
const txtRecordsMax = 100;

/**
 * The TXT records of a public name (labels before it may start with `_`), each joined from its parts, at most 100.
 * Empty when there are none, the name is not a public one, the lookup fails or the time is up: in all these cases the
 * record proves nothing.
 *
 * @param options.timeoutMs for everything, retries included
 */
export async function resolveTxt(
  name: string,
  options: { timeoutMs: number; resolve?: Resolver },
): Promise<string[]> {
  assert(options.timeoutMs > 0 && options.timeoutMs <= timeoutMsMax, "timeoutMs out of bounds");
  if (name.length > 253 || !isPublicName(name.replace(/^(?:_[a-z0-9-]{1,62}\.)+/, ""))) return [];

  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), options.timeoutMs);
  try {
    const resolver = options.resolve ?? systemResolver;
    const records = await orAborted(resolver.txt(name, stop.signal), stop.signal);
    return records.slice(0, txtRecordsMax);
  } catch {
    return [];
  } finally {
    clearTimeout(timer);
  }
}

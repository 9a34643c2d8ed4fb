// What one process may begin beside what it has under way. Pure.
import type { Delivery } from "./delivery-store.ts";

/** Large bodies that one process holds: what an order hands over has up to 8 MiB. */
const largeMax = 16;
const claimMax = 512;

/** What the next claim may take. */
export interface Room {
  /** Deliveries; none are left where it is 0. */
  readonly limit: number;
  /** Client domains that get no more: they have as many under way as are free. */
  readonly fullDomains: readonly string[];
  /** Large bodies among them. */
  readonly large: number;
  /** Client domains that get no more large bodies, for the same reason. */
  readonly fullOfLarge: readonly string[];
}

/**
 * The room beside these deliveries. One that hangs stays for 15 s, so a client domain takes half of what the others
 * leave at most: of a thousand receivers of one domain, a hundred that hang leave the others enough
 * (`npm run bench -- kyc`). The same holds for large bodies among themselves.
 *
 * @param underWayMax deliveries that may be under way
 */
export function roomBeside(underWay: readonly Delivery[], underWayMax: number): Room {
  const all = shareBeside(underWay, underWayMax);
  const large = shareBeside(
    underWay.filter(({ isLarge }) => isLarge),
    largeMax,
  );
  return {
    // All of it may be one domain's, so a claim leaves half of what is free.
    limit: Math.max(0, Math.min(claimMax, Math.ceil(all.free / 2))),
    fullDomains: all.full,
    // They are few: one claim could give a domain that is nearly full three quarters of them.
    large: Math.max(0, Math.ceil((large.free - large.next) / 2)),
    fullOfLarge: large.full,
  };
}

interface Share {
  readonly free: number;
  /** Client domains that have as many under way as are free. */
  readonly full: readonly string[];
  /** What the fullest of the others has under way. */
  readonly next: number;
}

function shareBeside(underWay: readonly Delivery[], most: number): Share {
  const free = most - underWay.length;
  const counts = [...Map.groupBy(underWay, (each) => each.clientDomainId)].map(
    ([domain, deliveries]) => ({ domain, count: deliveries.length }),
  );
  const [full, others] = [
    counts.filter(({ count }) => count >= free),
    counts.filter(({ count }) => count < free),
  ];
  return {
    free,
    full: full.map(({ domain }) => domain),
    next: Math.max(0, ...others.map(({ count }) => count)),
  };
}

// How many deliveries one process may begin beside those under way. Pure.
import type { Delivery } from "./delivery-store.ts";

/** Large bodies that one process holds in memory at a time: each may have 8 MiB. */
const largeMax = 16;
const claimMax = 512;

/** What the next claim may take. */
export interface Room {
  /** Deliveries. */
  readonly limit: number;
  /** Client domains that get no more: they have at least as many under way as are free. */
  readonly fullDomains: readonly string[];
  /** Deliveries with large bodies. */
  readonly large: number;
  /** Client domains that get no more large bodies, for the same reason. */
  readonly fullOfLarge: readonly string[];
}

/**
 * The room beside these deliveries. One that hangs occupies its place for 15 s, so a client domain gets at most half of
 * what the others leave free: then its hanging receivers cannot use up the places of everybody else
 * (`npm run bench -- kyc`). The same rule applies to large bodies among themselves.
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
    // One domain may get all of a claim, so a claim takes only half of what is free.
    limit: Math.max(0, Math.min(claimMax, Math.ceil(all.free / 2))),
    fullDomains: all.full,
    // They are few: half of all free ones would let a domain that is nearly full get up to three quarters of them.
    large: Math.max(0, Math.ceil((large.free - large.next) / 2)),
    fullOfLarge: large.full,
  };
}

interface Share {
  readonly free: number;
  /** Client domains that have at least as many under way as are free. */
  readonly full: readonly string[];
  /** How many the busiest of the others has under way. */
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

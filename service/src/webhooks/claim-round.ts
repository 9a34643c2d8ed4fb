// How successive claims go through all endpoints, a part of them at a time. Pure.
import { type Claimed, firstEndpoint } from "./delivery-store.ts";

/** Endpoints that one claim looks at. */
export const endpointsMax = 1024;

export interface Round {
  /** The next claim looks at the endpoints after this one. */
  readonly after: string;
  /** Whether it began at the first endpoint; then it has seen all of them once it reaches the last. */
  readonly isFull: boolean;
  /** Deliveries that its claims have taken so far. */
  readonly claimed: number;
}

/** Begins a round where the previous one stopped. */
export function beginRound(after: string): Round {
  return { after, isFull: after === firstEndpoint, claimed: 0 };
}

/** Where the next claim continues, and whether anything due is left. */
export interface Progress {
  readonly round: Round;
  readonly isOver: boolean;
  readonly hasDueLeft: boolean;
}

/**
 * What follows a claim. The round is over once everything due was taken, or once a full round took nothing: then what
 * is left has to wait until its endpoint or its client domain has room.
 *
 * @param limit the claim's limit of deliveries
 */
export function advanceRound(round: Round, claimed: Claimed, limit: number): Progress {
  const count = claimed.deliveries.length;
  if (claimed.due <= count) return { round, isOver: true, hasDueLeft: false };
  // Another process had the turn: try again at the same place.
  if (!claimed.hasTurn) return { round, isOver: false, hasDueLeft: false };
  const after = followingOf(claimed, limit);
  const claimedInRound = round.claimed + count;
  if (after !== firstEndpoint) {
    const going = { ...round, after, claimed: claimedInRound };
    return { round: going, isOver: false, hasDueLeft: true };
  }
  const isOver = round.isFull && claimedInRound === 0;
  return { round: beginRound(firstEndpoint), isOver, hasDueLeft: true };
}

/** The last endpoint that the claim reached, or the first again if it reached the end. */
function followingOf({ deliveries, scanned, lastEndpoint }: Claimed, limit: number): string {
  if (deliveries.length >= limit)
    return deliveries.map((each) => each.endpointId).reduce((a, b) => (a > b ? a : b));
  return scanned >= endpointsMax && lastEndpoint !== null ? lastEndpoint : firstEndpoint;
}

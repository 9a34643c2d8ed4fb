// How claims go round the endpoints, a part of them at a time. Pure.
import { type Claimed, firstEndpoint } from "./delivery-store.ts";

/** Endpoints that one claim looks at. */
export const endpointsMax = 1024;

export interface Round {
  /** The next claim looks at the endpoints after this one. */
  readonly after: string;
  /** It began at the first endpoint, so at its end it has seen all of them. */
  readonly isFull: boolean;
  /** Deliveries that its claims have taken so far. */
  readonly claimed: number;
}

/** Begins a round where the one before it stopped. */
export function beginRound(after: string): Round {
  return { after, isFull: after === firstEndpoint, claimed: 0 };
}

/** Where the claims go on after this one, and whether anything is left that is due. */
export interface Progress {
  readonly round: Round;
  readonly isOver: boolean;
  readonly hasDueLeft: boolean;
}

/**
 * What follows a claim. The round is over once everything due was taken, or once a full round took nothing: what is left
 * has to wait for its endpoint or its client domain.
 *
 * @param limit of deliveries, that the claim was made with
 */
export function advanceRound(round: Round, claimed: Claimed, limit: number): Progress {
  const count = claimed.deliveries.length;
  if (claimed.due <= count) return { round, isOver: true, hasDueLeft: false };
  // Another process had the turn: the same place is asked for again.
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

/** The last endpoint that the claim reached; the first again where it reached the end. */
function followingOf({ deliveries, scanned, lastEndpoint }: Claimed, limit: number): string {
  if (deliveries.length >= limit)
    return deliveries.map((each) => each.endpointId).reduce((a, b) => (a > b ? a : b));
  return scanned >= endpointsMax && lastEndpoint !== null ? lastEndpoint : firstEndpoint;
}

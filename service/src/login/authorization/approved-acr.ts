import type { Acr } from "../../accounts/index.ts";
import { acrAtLeast, acrWeakest } from "./acr.ts";

/** One approval of the user for a client in a session. */
export interface SessionApproval {
  readonly scope: string;
  /** A JSON array with at most one audience. */
  readonly audience: string;
  readonly acr: Acr;
}

/**
 * The `acr` with which a session may answer: that of the best approval of exactly these scopes for exactly this
 * audience, or that of the session's last login if it was weaker, since the answer carries the time of that login. The
 * order of scopes does not matter (RFC 6749 section 3.3).
 *
 * @param approvals for the client that asks
 * @returns null where nothing like it was approved
 */
export function approvedAcr(
  session: { readonly acr: Acr; readonly approvals: readonly SessionApproval[] },
  asked: { readonly scope: string; readonly audience: readonly string[] },
): Acr | null {
  const acrs = session.approvals
    .filter(({ audience }) => audience === JSON.stringify(asked.audience))
    .filter(({ scope }) => isSameSet(scope.split(" "), asked.scope.split(" ")))
    .map(({ acr }) => acr);
  const [first, ...others] = acrs;
  if (first === undefined) return null;
  const best = others.reduce((one, other) => (acrAtLeast(one, other) ? one : other), first);
  return acrWeakest([best, session.acr]);
}

const isSameSet = (one: readonly string[], other: readonly string[]): boolean =>
  new Set(one).symmetricDifference(new Set(other)).size === 0;

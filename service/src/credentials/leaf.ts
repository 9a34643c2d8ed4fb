import { hash } from "node:crypto";
import type { FieldName, Hex32, Info } from "@svc/protocol";

/** The state of an attested leaf: valid, expired, or ended before that. */
export type LeafStatus = "LIVE" | "EXPIRED" | "REVOKED";

/** SHA-256 as 64 lower-case hex digits, see {@link openingOf}. */
export type Opening = string;

/** A stored leaf, with the facts that decide its status. */
export interface KnownLeaf {
  readonly field: FieldName;
  readonly leaf: Hex32;
  /** {@link openingOf} its value and pepper. */
  readonly opening: Opening;
  /** Unix seconds; from then on it is no longer valid. */
  readonly expiresAt: number;
  /** Whether it was revoked, withdrawn or lapsed, or its issuer distrusted. */
  readonly isRevoked: boolean;
}

/** A leaf that a triple opens. */
export interface MatchedLeaf {
  readonly leaf: Hex32;
  /** Unix seconds. */
  readonly expiresAt: number;
  readonly status: LeafStatus;
}

/**
 * Represents a value and its pepper in the index: SHA-256 of the canonical JSON `["svc-opening-v1", <pepper>, <data>]`.
 * As binding and, by the pepper, as hiding as the commitment. It is used instead of that because keccak256 of an image
 * blocks the event loop twice as long.
 */
export function openingOf({ data, pepper }: Pick<Info, "data" | "pepper">): Opening {
  return hash("sha256", JSON.stringify(["svc-opening-v1", pepper.toLowerCase(), data]), "hex");
}

/** The leaf of that field with that opening, and its status; null if there is none. */
export function matchLeaf(
  leaves: readonly KnownLeaf[],
  { field, opening }: { readonly field: FieldName; readonly opening: Opening | undefined },
  now: number,
): MatchedLeaf | null {
  const found = leaves.find((each) => each.field === field && each.opening === opening);
  if (found === undefined) return null;
  const { leaf, expiresAt } = found;
  return { leaf, expiresAt, status: statusOfLeaf(found, now) };
}

/** The state of an attested leaf. */
export function statusOfLeaf(
  { isRevoked, expiresAt }: Pick<KnownLeaf, "isRevoked" | "expiresAt">,
  now: number,
): LeafStatus {
  if (isRevoked) return "REVOKED";
  return expiresAt > now ? "LIVE" : "EXPIRED";
}

import { hash } from "node:crypto";
import type { FieldName, Hex32, Info } from "@svc/protocol";

/** The state of an attested leaf: it counts, it has expired, or it was ended earlier. */
export type LeafStatus = "LIVE" | "EXPIRED" | "REVOKED";

/** SHA-256 as 64 lower-case hex digits, see {@link openingOf}. */
export type Opening = string;

/** A stored leaf, with the facts that decide whether it counts. */
export interface KnownLeaf {
  readonly field: FieldName;
  readonly leaf: Hex32;
  /** {@link openingOf} its value and pepper. */
  readonly opening: Opening;
  /** Unix seconds; from here on it no longer counts. */
  readonly expiresAt: number;
  /** Revoked, withdrawn, lapsed, or its issuer distrusted. */
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
 * It is as binding as the commitment, and by the pepper as hiding; keccak256 of an image would block the process for
 * twice as long.
 */
export function openingOf({ data, pepper }: Pick<Info, "data" | "pepper">): Opening {
  return hash("sha256", JSON.stringify(["svc-opening-v1", pepper.toLowerCase(), data]), "hex");
}

/** The leaf of that field with that opening, and its state; null if there is none. */
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

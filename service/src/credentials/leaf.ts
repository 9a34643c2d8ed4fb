import { commitmentOf, type FieldName, type Hex32, type Info } from "@svc/protocol";

/** What has become of a leaf that was attested: it counts, ended by itself, or was ended before that. */
export type LeafStatus = "LIVE" | "EXPIRED" | "REVOKED";

/** A leaf that is kept, with what decides whether it counts. */
export interface KnownLeaf {
  readonly field: FieldName;
  readonly leaf: Hex32;
  readonly commitment: Hex32;
  /** Unix seconds; from here on it no longer counts. */
  readonly expiresAt: number;
  /** Revoked, withdrawn, lapsed, or its issuer distrusted. */
  readonly isRevoked: boolean;
}

/** A leaf that a triple opens. */
export interface MatchedLeaf {
  readonly leaf: Hex32;
  readonly commitment: Hex32;
  readonly expiresAt: number;
  readonly status: LeafStatus;
}

export function statusOfLeaf(
  { isRevoked, expiresAt }: Pick<KnownLeaf, "isRevoked" | "expiresAt">,
  now: number,
): LeafStatus {
  if (isRevoked) return "REVOKED";
  return expiresAt > now ? "LIVE" : "EXPIRED";
}

/**
 * For each triple, in their order, the leaf that it opens, or null. All leaves of one user: their user, field and end
 * are fixed, so equal commitments are equal leaves, and the value is hashed once however many leaves there are.
 */
export function matchInfos(
  infos: readonly Info[],
  leaves: readonly KnownLeaf[],
  now: number,
): (MatchedLeaf | null)[] {
  return infos.map((info) => {
    const commitment = commitmentOf(info);
    const found = leaves.find(
      (leaf) => leaf.field === info.field && leaf.commitment === commitment,
    );
    if (found === undefined) return null;
    const { leaf, expiresAt } = found;
    return { leaf, commitment, expiresAt, status: statusOfLeaf(found, now) };
  });
}

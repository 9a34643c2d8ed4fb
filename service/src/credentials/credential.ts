import {
  type Address,
  buildTree,
  commitmentOf,
  type FieldName,
  type Hex32,
  hexOfBytes,
  isHexOf,
  leafOf,
} from "@svc/protocol";
import type { FieldValue } from "./derived-fields.ts";
import { type Issuer, isTrusted } from "./issuer.ts";
import { type Opening, openingOf } from "./leaf.ts";

/** One field of a credential that is being made, or as its wallet collects it. */
export interface SaltedField extends FieldValue {
  /** 32 random bytes. */
  readonly pepper: Hex32;
}

/** One field as it is stored. */
interface FieldLeaf<Field> {
  readonly field: Field;
  readonly leaf: Hex32;
  readonly commitment: Hex32;
  /** {@link openingOf} value and pepper. */
  readonly opening: Opening;
  readonly expiresAt: number;
}

/** The tree of a credential. */
export interface CredentialTree<Field extends string = FieldName> {
  readonly leaves: readonly FieldLeaf<Field>[];
  /** These leaves and random ones, sorted, so that their order reveals nothing. */
  readonly tree: readonly Hex32[];
  readonly root: Hex32;
}

/** With a single leaf the root would be that leaf, and its proof empty. */
const treeSizeMin = 2;

/**
 * Hashes salted fields into a tree. It is padded with random leaves to a power of two, so that neither a proof nor the
 * tree reveals how many fields there are.
 *
 * @param randomLeaf 32 random bytes
 */
export function plantTree<Field extends string>(
  user: Address,
  fields: readonly (Omit<SaltedField, "field"> & { readonly field: Field })[],
  randomLeaf: () => Uint8Array,
): CredentialTree<Field> {
  const leaves = fields.map(({ field, data, pepper, expiresAt }) => {
    const commitment = commitmentOf({ data, pepper });
    const leaf = leafOf({ user, field, commitment, expiresAt });
    return { field, leaf, commitment, opening: openingOf({ data, pepper }), expiresAt };
  });
  const size = Math.max(treeSizeMin, 2 ** Math.ceil(Math.log2(leaves.length)));
  const padding = Array.from({ length: size - leaves.length }, () => hexOfBytes(randomLeaf()));
  const tree = [...leaves.map(({ leaf }) => leaf), ...padding].toSorted();
  return { leaves, tree, root: buildTree(tree).root };
}

/** Serialises what is sealed until the wallet collects it. */
export function writeValues(fields: readonly SaltedField[]): Buffer {
  const values = fields.map(({ field, data, pepper }) => [field, data, pepper]);
  return Buffer.from(JSON.stringify(values));
}

/** Value and pepper of each field, by its name, as {@link writeValues} wrote them. */
export function readValues(plain: Buffer): ReadonlyMap<string, { data: string; pepper: Hex32 }> {
  const values = JSON.parse(plain.toString()) as [string, string, string][];
  return new Map(
    values.map(([field, data, pepper]) => {
      if (!isHexOf(pepper, 32)) throw new Error("a pepper has 32 bytes");
      return [field, { data, pepper }];
    }),
  );
}

/** The facts that decide the status of a credential. */
export interface CredentialState {
  readonly attestedAt: number | null;
  /** Why it ended early: by its issuer, by its user, or because nobody collected it. */
  readonly endedReason: EndedReason | null;
  readonly expiresAt: number;
}

export type EndedReason = "revoked" | "withdrawn" | "lapsed";

export type CredentialStatus = EndedReason | "pending" | "live" | "expired" | "distrusted";

/** `pending` until its attestation is final on chain. */
export function statusOfCredential(
  { attestedAt, endedReason, expiresAt }: CredentialState,
  issuer: Pick<Issuer, "distrustedFrom">,
  now: number,
): CredentialStatus {
  if (endedReason !== null) return endedReason;
  if (!isTrusted(issuer, attestedAt ?? now)) return "distrusted";
  if (expiresAt <= now) return "expired";
  return attestedAt === null ? "pending" : "live";
}

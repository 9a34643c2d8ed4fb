import { isFieldName } from "../attributes.ts";
import type { FieldName } from "../attributes.ts";
import { isHexOf, isRecord } from "../encoding.ts";
import type { Hex32 } from "../encoding.ts";
import {
  ResultRefused,
  hashMember,
  optionalMember,
  secondsMember,
  textMember,
  within,
} from "./members.ts";
import type { Members } from "./members.ts";

/**
 * Shows that a field of the holder is verified, without its value: the verifier rebuilds the leaf from the field and
 * `svcID` and walks to the root (decisions, section 3, "Results left open").
 */
export interface AccessProof {
  field: FieldName;
  commitment: Hex32;
  /** Unix seconds; part of the leaf. */
  expiresAt: number;
  root: Hex32;
  /** The siblings from leaf to root. */
  proof: readonly Hex32[];
  /** Only for a derived yes/no field, which is opened as well: its value and its pepper. */
  opening?: { data: string; pepper: Hex32 };
}

const proofsMax = 200;
/** A tree of 2^64 leaves. */
const siblingsMax = 64;

export function proofsMember(members: Members, name: string): readonly AccessProof[] {
  const value = optionalMember(members, name);
  if (value === undefined) throw new ResultRefused(name, "is missing");
  if (!Array.isArray(value)) throw new ResultRefused(name, "is not a list");
  if (value.length > proofsMax) throw new ResultRefused(name, `has more than ${proofsMax} entries`);
  return value.map((entry: unknown, index) => readProof(entry, `${name}[${index}]`));
}

function readProof(entry: unknown, at: string): AccessProof {
  if (!isRecord(entry)) throw new ResultRefused(at, "is not an object");
  return within(at, () => {
    return {
      field: fieldMember(entry, "field"),
      commitment: hashMember(entry, "commitment"),
      expiresAt: secondsMember(entry, "expiresAt"),
      root: hashMember(entry, "root"),
      proof: siblingsMember(entry, "proof"),
      ...openingOf(optionalMember(entry, "opening")),
    };
  });
}

/** The name of a field of the catalogue. */
export function fieldMember(members: Members, name: string): FieldName {
  const field = textMember(members, name);
  if (!isFieldName(field)) throw new ResultRefused(name, "is not a field of the catalogue");
  return field;
}

/** The siblings of a Merkle proof. */
export function siblingsMember(members: Members, name: string): readonly Hex32[] {
  const value = optionalMember(members, name);
  if (
    !Array.isArray(value) ||
    value.length > siblingsMax ||
    !value.every((each) => isHexOf(each, 32))
  ) {
    throw new ResultRefused(name, `is not a list of at most ${siblingsMax} hashes`);
  }
  return value.map((each) => each.toLowerCase() as Hex32);
}

function openingOf(value: unknown): { opening?: { data: string; pepper: Hex32 } } {
  if (value === undefined) return {};
  if (!isRecord(value)) throw new ResultRefused("opening", "is not an object");
  return within("opening", () => ({
    opening: { data: textMember(value, "data"), pepper: hashMember(value, "pepper") },
  }));
}

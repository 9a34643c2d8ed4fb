import { keccak256 } from "./keccak.ts";

import { bytesOfText, hexOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { businessFields } from "./field-catalogue.generated.ts";

/** A field of a company record. */
export type BusinessFieldName = keyof typeof businessFields;
/** Whom a field is about. */
export type SubjectType = "BUSINESS" | "DIRECTOR" | "UBO" | "REPRESENTATIVE" | "SHAREHOLDER";

/** What the catalogue says about a business field. */
export interface BusinessFieldEntry {
  readonly group: string;
  readonly subjectType: SubjectType;
  /** How its value is written. */
  readonly type: string;
  readonly format?: string;
  /** Whether its values are about a person, whatever the business. */
  readonly naturalPersonPii: boolean;
  /** `declared`: stated by the business itself and never verified. */
  readonly basis: "verified" | "declared";
}

/** Every business field, in catalogue order. */
export const businessFieldNames: readonly BusinessFieldName[] =
  Object.keys(businessFields).filter(isBusinessField);

export function isBusinessField(name: string): name is BusinessFieldName {
  return Object.hasOwn(businessFields, name);
}

export function entryOfBusinessField(name: BusinessFieldName): BusinessFieldEntry {
  return businessFields[name];
}

/** keccak256 of the name; requests accept it in place of the name. */
export function hashOfBusinessField(name: BusinessFieldName): Hex32 {
  return hexOfBytes(keccak256(bytesOfText(name)));
}

/** The name whose {@link hashOfBusinessField} this is, in upper or lower case; null if there is none. */
export function businessFieldOfHash(hash: string): BusinessFieldName | null {
  nameOfHash ??= new Map(businessFieldNames.map((name) => [hashOfBusinessField(name), name]));
  return nameOfHash.get(hash.toLowerCase()) ?? null;
}

let nameOfHash: ReadonlyMap<string, BusinessFieldName> | undefined;

/**
 * What the leaf of a business field names as its field: the name, or for a person `NAME/subject`, so that a value
 * proved for one director proves nothing about another.
 *
 * @param of.subject empty for the business itself
 */
export function leafFieldOf(of: {
  readonly name: BusinessFieldName;
  readonly subject: string;
}): string {
  return of.subject === "" ? of.name : `${of.name}/${of.subject}`;
}

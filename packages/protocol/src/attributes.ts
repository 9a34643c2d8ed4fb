import { kycFields, kycParents } from "./field-catalogue.generated.ts";

/** A concrete KYC field: data is delivered and leaves are made only under these names. */
export type FieldName = keyof typeof kycFields;
/** A name that any one of several concrete fields satisfies; it can be asked for, but never delivered. */
export type ParentName = keyof typeof kycParents;

/** What the catalogue says about a KYC field. */
export type FieldEntry = (typeof kycFields)[FieldName];
/** `pii-high` and `biometric` values never go to an unknown requester (decisions, section 3). */
export type Sensitivity = FieldEntry["sensitivity"];
/** How a field's value is written and shown. */
export type FieldType = FieldEntry["type"];

/** In a `request` link: the person who scans it picks a business, and the request object names the fields. Reserved. */
export const businessAttribute = "business";

/** Every concrete KYC field name, in catalogue order. */
export const fieldNames: readonly FieldName[] = Object.keys(kycFields).filter(isFieldName);
/** Every parent name, in catalogue order. */
export const parentNames: readonly ParentName[] = Object.keys(kycParents).filter(isParentName);

export function isFieldName(name: string): name is FieldName {
  return Object.hasOwn(kycFields, name);
}

export function isParentName(name: string): name is ParentName {
  return Object.hasOwn(kycParents, name);
}

/** Group, value type, sensitivity and whether the field is derived from another. */
export function entryOfField(name: FieldName): FieldEntry {
  return kycFields[name];
}

/** The concrete fields that satisfy a requested name: the name itself, or for a parent all that it accepts. */
export function fieldsOfName(name: FieldName | ParentName): readonly FieldName[] {
  return isParentName(name) ? kycParents[name] : [name];
}

const aliases = new Map<string, FieldName | ParentName>([
  ["full-name", "NAME_PARENT_FIELD"],
  ["date-of-birth", "DOB_PARENT_FIELD"],
  ["email", "EMAIL"],
  ["phone", "PHONE"],
]);

/** The spelling of a catalogue name in `attr`: kebab-case, `IDCARD_DOB` -> `idcard-dob` (decisions, section 1). */
export function attributeOfField(name: FieldName | ParentName): string {
  return name.toLowerCase().replaceAll("_", "-");
}

/** The catalogue name that an `attr` element asks for, aliases included; null if it is not in the catalogue. */
export function nameOfAttribute(attribute: string): FieldName | ParentName | null {
  const alias = aliases.get(attribute);
  if (alias !== undefined) return alias;
  if (!isAttribute(attribute)) return null;
  const name = attribute.toUpperCase().replaceAll("-", "_");
  return isFieldName(name) || isParentName(name) ? name : null;
}

/** The concrete fields that satisfy an `attr` element; empty if it is not in the catalogue. */
export function fieldsOfAttribute(attribute: string): readonly FieldName[] {
  const name = nameOfAttribute(attribute);
  return name === null ? [] : fieldsOfName(name);
}

/** Whether a text is spelled as an `attr` element: lower-case kebab-case, at most 64 characters. */
export function isAttribute(text: string): boolean {
  return text.length <= 64 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(text);
}

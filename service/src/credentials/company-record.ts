import {
  type Address,
  type BusinessFieldName,
  entryOfBusinessField,
  type Hex32,
  isBusinessField,
  isHexOf,
  leafFieldOf,
  parseAddress,
} from "@svc/protocol";
import { readAddress } from "../platform/http/address-input.ts";
import { invalidRequest } from "../platform/http/problems.ts";
import { newestDate } from "./calendar.ts";
import { faultOfCompanyValue } from "./company-value.ts";
import { checkEnd } from "./issue.ts";

/** The most fields of one record. */
export const companyFieldsMax = 400;
const subjectPattern = /^[a-z0-9-]{1,40}$/;

/** The record of a business, as an issuer submits it. */
export interface GivenCompanyRecord {
  /** The wallet of the business, in any spelling of an address. */
  readonly business: string;
  readonly fields: readonly GivenCompanyField[];
  /** When the issuer looked at its sources, Unix seconds. Default: now. */
  readonly asOf?: number;
  /** Unix seconds. */
  readonly expiresAt: number;
}

export interface GivenCompanyField {
  readonly field: string;
  /**
   * Which person it is about, such as `director-1`: an id that the issuer chooses and that identifies nobody. Absent
   * for the business itself.
   */
  readonly subject?: string;
  readonly data: string;
}

/** One value about the business or one of its persons. */
export interface CompanyValue {
  readonly name: BusinessFieldName;
  /** Empty for the business itself. */
  readonly subject: string;
  readonly data: string;
}

export interface CheckedCompanyRecord {
  readonly business: Address;
  readonly values: readonly CompanyValue[];
  readonly asOf: number;
  readonly expiresAt: number;
}

/** Checks a record. Messages never contain values, because callers log them. @throws {Problem} invalid_request */
export function checkCompanyRecord(given: GivenCompanyRecord, now: number): CheckedCompanyRecord {
  const business = readAddress("business", given.business);
  const { expiresAt, asOf = now } = given;
  checkEnd(expiresAt, now);
  if (!Number.isSafeInteger(asOf) || asOf <= 0 || asOf > now)
    throw invalidRequest("asOf must be a time in Unix seconds that has come");
  if (given.fields.length === 0 || given.fields.length > companyFieldsMax)
    throw invalidRequest(`fields must have 1 to ${companyFieldsMax} elements`);
  const today = newestDate(now);
  const values = given.fields.map((field, index) => {
    const value = checkField(field, { index, today });
    if (value.name === "BUSINESS_WALLET_ADDRESS" && parseAddress(value.data) !== business)
      throw invalidRequest(`fields[${index}] ${value.name} must be the wallet of this business`);
    return value;
  });
  if (new Set(values.map(leafFieldOf)).size < values.length)
    throw invalidRequest("fields names a field twice for the same subject");
  return { business, values, asOf, expiresAt };
}

function checkField(
  { field, subject = "", data }: GivenCompanyField,
  { index, today }: { index: number; today: string },
): CompanyValue {
  if (!isBusinessField(field))
    throw invalidRequest(`fields[${index}].field is not a business field of the catalogue`);
  const at = `fields[${index}] ${field}`;
  const isOfPerson = entryOfBusinessField(field).subjectType !== "BUSINESS";
  if (isOfPerson && !subjectPattern.test(subject))
    throw invalidRequest(`${at} needs a subject: 1 to 40 of a-z, 0-9 and -`);
  if (!isOfPerson && subject !== "")
    throw invalidRequest(`${at} tells of the business: no subject`);
  const fault = faultOfCompanyValue(field, data, today);
  if (fault !== null) throw invalidRequest(`${at} ${fault}`);
  return { name: field, subject, data };
}

/**
 * Whether a record marks its business as verified: it has a verified field, and does not itself say that the
 * verification is unfinished or has ended.
 */
export function vouchesFor(values: readonly CompanyValue[]): boolean {
  const stateOf = (name: BusinessFieldName): string | undefined =>
    values.find((value) => value.name === name)?.data;
  const isOpen =
    stateOf("BUSINESS_VERIFIED") === "false" ||
    (stateOf("BUSINESS_VERIFICATION_STATUS") ?? "VERIFIED") !== "VERIFIED";
  if (isOpen) return false;
  return values.some(({ name }) => entryOfBusinessField(name).basis === "verified");
}

/** Whether the business is a single person according to the type in a record; null if the record has no type. */
export function soleProprietorOf(values: readonly CompanyValue[]): boolean | null {
  const type = values.find(({ name }) => name === "BUSINESS_COMPANY_TYPE");
  return type === undefined ? null : type.data === "SOLE_PROPRIETOR";
}

/** Serialises the part of a field that is sealed. */
export function writeValue({ data, pepper }: { data: string; pepper: Hex32 }): Buffer {
  return Buffer.from(JSON.stringify([data, pepper]));
}

/** Reads what {@link writeValue} wrote. */
export function readValue(plain: Buffer): { data: string; pepper: Hex32 } {
  const [data, pepper] = JSON.parse(plain.toString()) as [string, string];
  if (!isHexOf(pepper, 32)) throw new Error("a pepper has 32 bytes");
  return { data, pepper };
}

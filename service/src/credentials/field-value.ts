import {
  bytesOfBase64,
  entryOfField,
  type FieldName,
  type FieldType,
  isFieldName,
  isShowable,
} from "@svc/protocol";
import { parseDate } from "./calendar.ts";
import { isCountryCode } from "./country.ts";
import { parseEmailAddress } from "./email-address.ts";

/** Characters of a text; a note may be longer. */
const textMax = 1000;
const noteMax = 4000;
/** Characters of a JSON value. */
const jsonMax = 16_384;
/** Of the Base64 text (decisions section 1, Field names). */
const imageMax = 1_048_576;
const countriesMax = 10;

/**
 * What is wrong with a field's value, or null: checked against the catalogue's type and format. Values are hashed as
 * they are, so nothing is trimmed or rewritten.
 *
 * @param today `YYYY-MM-DD`, UTC
 */
export function faultOfValue(field: FieldName, data: string, today: string): string | null {
  if (data === "") return "is empty";
  const { type } = entryOfField(field);
  return checks[type](data, { field, today });
}

interface About {
  readonly field: FieldName;
  readonly today: string;
}

const checks: Record<FieldType, (data: string, about: About) => string | null> = {
  text: faultOfText,
  date: faultOfDate,
  datetime: (data) => (isTime(data) ? null : "must be a time of RFC 3339"),
  country: faultOfCountry,
  enum: faultOfEnum,
  boolean: (data) => (data === "true" || data === "false" ? null : "must be true or false"),
  integer: (data) => (/^(?:0|[1-9]\d{0,8})$/.test(data) ? null : "must be a whole number"),
  image: faultOfImage,
  email: (data) => (parseEmailAddress(data) === null ? "must be an e-mail address" : null),
  phone: (data) => (/^\+[1-9]\d{6,14}$/.test(data) ? null : "must be a number of E.164"),
  json: faultOfJson,
};

function faultOfText(data: string, { field }: About): string | null {
  if (!isShowable(data)) return "holds control or bidirectional characters";
  if (data !== data.trim()) return "begins or ends with white space";
  if (field.endsWith("_MRZ"))
    return isMrz(data) ? null : "must be two or three lines of a machine-readable zone";
  if (field.startsWith("EXTERNAL_WALLET_"))
    return /^[0-9A-Za-z:]{14,120}$/.test(data) ? null : "must be an address of its chain";
  const isNote = field.endsWith("_NOTE") || field.endsWith("_REMARKS");
  if (!isNote && data.includes("\n")) return "must be one line";
  const most = isNote ? noteMax : textMax;
  return data.length <= most ? null : `has more than ${most} characters`;
}

/** ICAO 9303: TD1 has three lines of 30, TD2 two of 36, TD3 two of 44; driving licences (ISO 18013) one of 30. */
function isMrz(data: string): boolean {
  return /^(?:[0-9A-Z<]{30}(?:\n[0-9A-Z<]{30}){2}|[0-9A-Z<]{36}\n[0-9A-Z<]{36}|[0-9A-Z<]{44}\n[0-9A-Z<]{44}|[0-9A-Z<]{30})$/.test(
    data,
  );
}

/** A person's dates lie in the past; only a document ends later. */
function faultOfDate(data: string, { field, today }: About): string | null {
  if (parseDate(data) === null) return "must be a date, YYYY-MM-DD";
  if (data < "1850-01-01" || data > "2200-12-31") return "is no date of a living person's document";
  return !field.endsWith("_EXPIRY_DATE") && data > today ? "lies in the future" : null;
}

function faultOfCountry(data: string, { field }: About): string | null {
  const countries = data.split(",");
  const isList = field.endsWith("_NATIONALITY");
  if (!countries.every(isCountryCode)) return "must be a country of ISO 3166-1 alpha-3";
  if (new Set(countries).size < countries.length) return "names a country twice";
  return countries.length <= (isList ? countriesMax : 1) ? null : "names too many countries";
}

/** The words of the catalogue, by how the field's name ends. */
export const enumWords: Readonly<Record<string, readonly string[]>> = {
  _SEX: ["M", "F", "X"],
  _AML_CHECK: ["CLEAR", "HIT", "NOT_RUN"],
  ADDRESS_DOCUMENT_TYPE: [
    "UTILITY_BILL",
    "BANK_STATEMENT",
    "TAX_ASSESSMENT",
    "RESIDENCE_CERTIFICATE",
    "INSURANCE_STATEMENT",
    "RENTAL_CONTRACT",
    "OTHER",
  ],
  SELFIE_LIVENESS_CHECK: ["CLEAR", "FAILED", "NOT_RUN"],
  SELFIE_FACE_MATCH: ["CLEAR", "FAILED", "NOT_RUN"],
  PEP_STATUS: ["IS_PEP", "IS_NOT_PEP", "UNKNOWN"],
  SANCTIONS_STATUS: ["CLEAR", "HIT", "NOT_RUN"],
  KYC_LEVEL: ["LOW", "SUBSTANTIAL", "HIGH"],
};

function faultOfEnum(data: string, { field }: About): string | null {
  const words = Object.entries(enumWords).find(([ending]) => field.endsWith(ending))?.[1] ?? [];
  return words.includes(data) ? null : `must be one of ${words.join(", ")}`;
}

function faultOfImage(data: string, { field }: About): string | null {
  if (data.length > imageMax) return "is larger than 1 MiB";
  const bytes = bytesOfBase64(data);
  if (bytes === null) return "must be Base64";
  const isJpeg = bytes[0] === 0xff && bytes[1] === 0xd8 && bytes[2] === 0xff;
  if (isJpeg) return null;
  const head = Buffer.from(bytes.subarray(0, 12)).toString("latin1");
  const isOther =
    head.startsWith("\x89PNG\r\n\x1a\n") || (head.startsWith("RIFF") && head.endsWith("WEBP"));
  if (field.endsWith("_FACE_IMAGE")) return "must be a JPEG";
  return isOther ? null : "must be a JPEG, PNG or WebP";
}

/** Whether a text is a time of RFC 3339. */
export function isTime(data: string): boolean {
  const form = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)$/;
  return form.test(data) && !Number.isNaN(Date.parse(data));
}

/** What is wrong with a JSON object or list that people are shown, or null. */
export function faultOfJson(data: string): string | null {
  if (data.length > jsonMax) return `has more than ${jsonMax} characters`;
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return "must be JSON";
  }
  if (typeof value !== "object" || value === null) return "must be a JSON object or list";
  return areTextsShowable(value, 0) ? null : "holds texts that cannot be shown, or nests too deep";
}

const jsonDepthMax = 8;

function areTextsShowable(value: unknown, depth: number): boolean {
  if (depth > jsonDepthMax) return false;
  if (typeof value === "string") return isShowable(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(
    ([name, each]) => isShowable(name) && areTextsShowable(each, depth + 1),
  );
}

/** The documents that a credential can be of: groups of the catalogue. */
export const documents = [
  "IDCARD",
  "PASSPORT",
  "RESIDENCE_PERMIT",
  "DRIVER_LICENSE",
  "ADDRESS",
  "CONTACT",
  "EXTERNAL_WALLET",
  "SELFIE",
  "TAX",
  "SCREENING",
  "ASSURANCE",
] as const;

export type Document = (typeof documents)[number];

/** What an issuer finds out while it verifies any document. */
const companionGroups = new Set<string>(["SELFIE", "SCREENING", "ASSURANCE"]);

/** What is wrong with naming this field in a credential of this document, or null. */
export function faultOfField(document: Document, name: string): string | null {
  if (!isFieldName(name)) return "is not a field of the catalogue";
  const { group, derived } = entryOfField(name);
  if (derived) return "is derived: it is computed from the document";
  return group === document || companionGroups.has(group)
    ? null
    : `does not belong to the document ${document}`;
}

import {
  bytesOfBase64,
  entryOfField,
  type FieldName,
  type FieldType,
  isShowable,
} from "@svc/protocol";
import { isTime, parseDate } from "./calendar.ts";
import { faultOfCountry } from "./country.ts";
import { parseEmailAddress } from "./email-address.ts";
import { faultOfJson } from "./json-value.ts";

/** The most characters of a text; a note may be longer. */
const textMax = 1000;
const noteMax = 4000;
/** The greatest length of the Base64 text (decisions section 1, Field names). */
const imageMax = 1_048_576;

/**
 * What is wrong with a field's value, or null: checked against the catalogue's type and format. Values are hashed as
 * they are, so nothing is trimmed or rewritten.
 *
 * @param today `YYYY-MM-DD`, the newest day that has begun anywhere
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
  country: (data, { field }) => faultOfCountry(data, field),
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
  const known = forms.find(({ fields }) => fields.test(field));
  if (known !== undefined) return known.form.test(data) ? null : `must be ${known.words}`;
  const isNote = field.endsWith("_NOTE") || field.endsWith("_REMARKS");
  if (!isNote && data.includes("\n")) return "must be one line";
  const most = isNote ? noteMax : textMax;
  return data.length <= most ? null : `has more than ${most} characters`;
}

const base58 = "[1-9A-HJ-NP-Za-km-z]";
const evmAddress = "0x[0-9A-Fa-f]{40}";

/** Texts of a particular form. Checksums are left to the issuer, who has verified the ownership of the wallet. */
const forms: readonly { fields: RegExp; form: RegExp; words: string }[] = [
  {
    fields: /_MRZ$/,
    // ICAO 9303: TD1 has three lines of 30, TD2 two of 36, TD3 two of 44; driving licences (ISO 18013) one of 30.
    form: /^(?:[0-9A-Z<]{30}(?:\n[0-9A-Z<]{30}){2}|[0-9A-Z<]{36}\n[0-9A-Z<]{36}|[0-9A-Z<]{44}\n[0-9A-Z<]{44}|[0-9A-Z<]{30})$/,
    words: "two or three lines of a machine-readable zone",
  },
  {
    fields: /^(?:IDCARD|PASSPORT|RESIDENCE_PERMIT|DRIVER_LICENSE)_NAME_EN$/,
    // U+02B0 to U+02FF represent letters that the Latin script lacks, such as ayin and the soft sign.
    form: /^(?=.*\p{Script=Latin})[\p{Script=Latin}\p{Script=Inherited}\p{Pd}\u02b0-\u02ff0-9 \u00a0.,'’‘`´·/<()"“”„«»]{1,1000}$/u,
    words: "in Latin letters",
  },
  walletForm("BTC", `(?:[13mn2]${base58}{25,34}|${bech32("bc|tb|bcrt")})`),
  walletForm("LTC", `(?:[LM3mn2Q]${base58}{25,34}|${bech32("ltc|tltc|rltc|ltcmweb|tmweb")})`),
  walletForm("ETH", evmAddress),
  walletForm("POL", evmAddress),
  walletForm("BNB", `(?:${evmAddress}|${bech32("bnb|tbnb")})`),
  walletForm("SOL", `${base58}{32,44}`),
];

/**
 * BIP 173: entirely in upper or entirely in lower case. The longest, MWEB addresses, have two keys and so 113
 * characters after the 1.
 */
function bech32(prefixes: string): string {
  const lower = `(?:${prefixes})1[02-9ac-hj-np-z]{11,113}`;
  return `${lower}|${lower.toUpperCase()}`;
}

function walletForm(chain: string, form: string) {
  return {
    fields: new RegExp(`^EXTERNAL_WALLET_${chain}$`),
    form: new RegExp(`^${form}$`),
    words: `an address of ${chain}`,
  };
}

/** A person's dates are in the past; only the end of a document is in the future. */
function faultOfDate(data: string, { field, today }: About): string | null {
  if (parseDate(data) === null) return "must be a date, YYYY-MM-DD";
  if (data < "1850-01-01" || data > "2200-12-31") return "is no date of a living person's document";
  return !field.endsWith("_EXPIRY_DATE") && data > today ? "lies in the future" : null;
}

/** The words of the catalogue, by the end of the field's name. */
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

/** Groups of fields about how an issuer verified a document, allowed with any document. */
const companionGroups = new Set<string>(["SELFIE", "SCREENING", "ASSURANCE"]);

/** What is wrong with naming this field in a credential of this document, or null. */
export function faultOfField(document: Document, name: FieldName): string | null {
  const { group, derived } = entryOfField(name);
  if (derived) return "is derived: it is computed from the document";
  return group === document || companionGroups.has(group)
    ? null
    : `does not belong to the document ${document}`;
}

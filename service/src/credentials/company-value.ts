import {
  type BusinessFieldEntry,
  type BusinessFieldName,
  checksumAddress,
  entryOfBusinessField,
  isShowable,
  parseAddress,
} from "@svc/protocol";
import { isTime, parseDate } from "./calendar.ts";
import { faultOfCountry, isCountryCode } from "./country.ts";
import { parseEmailAddress } from "./email-address.ts";
import { faultOfJson } from "./json-value.ts";

/** The most characters of a text; a comment may be longer. */
const textMax = 1000;
const commentMax = 4000;
const urlMax = 2000;

interface About extends BusinessFieldEntry {
  readonly name: BusinessFieldName;
  /** `YYYY-MM-DD`, the newest day that has begun anywhere. */
  readonly today: string;
}

/**
 * What is wrong with a value of a company record, or null: checked against the catalogue's type and format. Values are
 * hashed as they are, so nothing is trimmed or rewritten.
 *
 * @param today `YYYY-MM-DD`, the newest day that has begun anywhere
 */
export function faultOfCompanyValue(
  name: BusinessFieldName,
  data: string,
  today: string,
): string | null {
  if (data === "") return "is empty";
  const entry = entryOfBusinessField(name);
  const check = checks[entry.type];
  if (check === undefined) throw new Error(`no check for the type ${entry.type} of ${name}`);
  return check(data, { ...entry, name, today });
}

const checks: Readonly<Record<string, (data: string, about: About) => string | null>> = {
  text: faultOfText,
  date: faultOfDate,
  datetime: (data) => (isTime(data) ? null : "must be a time of RFC 3339"),
  country: (data, { name }) => faultOfCountry(data, name),
  enum: faultOfEnum,
  // Of a document only the issuer's finding; the file itself is never sent here.
  verdict: (data) => faultOfWord(data, ["VERIFIED", "REJECTED", "NOT_PROVIDED"]),
  boolean: (data) => faultOfWord(data, ["true", "false"]),
  integer: faultOfInteger,
  number: faultOfNumber,
  money: (data) =>
    /^(?:0|[1-9]\d{0,14})(?:\.\d{1,4})? [A-Z]{3}$/.test(data)
      ? null
      : "must be an amount and a currency of ISO 4217, such as `100000.00 CHF`",
  email: (data) => (parseEmailAddress(data) === null ? "must be an e-mail address" : null),
  phone: (data) => (/^\+[1-9]\d{6,14}$/.test(data) ? null : "must be a number of E.164"),
  url: (data) => (isUrl(data) ? null : "must be a URL that begins with https:// or http://"),
  address: (data) => (isChecksummed(data) ? null : "must be an address spelled as in EIP-55"),
  json: (data, { name, today }) => faultOfJson(data, { field: name, today }),
};

/** Texts of a particular form, by the end of the field's name; what the business itself declares is free text. */
const forms: readonly { ending: string; form: (data: string) => boolean; words: string }[] = [
  { ending: "_LEI", form: isLei, words: "an LEI of ISO 17442" },
  {
    ending: "_REGISTRATION_AUTHORITY",
    form: (data) => /^RA\d{6}$/.test(data),
    words: "a code of GLEIF's list of registration authorities",
  },
  {
    ending: "_JURISDICTION",
    form: (data) => isCountryCode(data) || /^[A-Z]{2}(?:-[0-9A-Z]{1,3})?$/.test(data),
    words: "a code of ISO 3166-1 or 3166-2",
  },
  { ending: "_DUNS", form: (data) => /^\d{9}$/.test(data), words: "nine digits" },
  {
    ending: "_EUID",
    form: (data) => /^[A-Z]{2}[0-9A-Za-z-]*\.[\x21-\x7e]{1,80}$/.test(data),
    words: "a European unique identifier",
  },
  {
    ending: "_LEGAL_FORM_CODE",
    form: (data) => /^[0-9A-Z]{4}$/.test(data),
    words: "a code of ISO 20275",
  },
  {
    ending: "_INDUSTRY_CODE",
    form: (data) => /^(?:NOGA|NACE|NAICS|SIC|ISIC):[0-9A-Z.]{1,12}$/.test(data),
    words: "a scheme and its code, such as `NOGA:620100`",
  },
  { ending: "_OWNERSHIP_BAND", form: isBand, words: "two whole percentages, such as `25-50`" },
];

function faultOfText(data: string, { name, basis }: About): string | null {
  if (!isShowable(data)) return "holds control or bidirectional characters";
  if (data !== data.trim()) return "begins or ends with white space";
  const isComment = name.endsWith("_COMMENT");
  if (!isComment && data.includes("\n")) return "must be one line";
  const most = isComment ? commentMax : textMax;
  if (data.length > most) return `has more than ${most} characters`;
  if (basis === "declared") return null;
  const known = forms.find(({ ending }) => name.endsWith(ending));
  return known === undefined || known.form(data) ? null : `must be ${known.words}`;
}

/** ISO 17442: with letters read as 10 to 35, the number modulo 97 is 1; the last two digits are chosen so. */
function isLei(data: string): boolean {
  if (!/^[0-9A-Z]{18}\d\d$/.test(data)) return false;
  const digits = Array.from(data, (character) => Number.parseInt(character, 36)).join("");
  return BigInt(digits) % 97n === 1n;
}

function isBand(data: string): boolean {
  const match = /^(\d{1,3})-(\d{1,3})$/.exec(data);
  if (match === null) return false;
  const [least, most] = [Number(match[1]), Number(match[2])];
  return least < most && most <= 100;
}

/** Dates of events that lie in the past when a record is made. */
const pastDates = ["_DOB", "_INCORPORATION_DATE", "_ISSUED_ON", "_NOTIFIED_ON"];

/** Companies may be centuries old, persons may not. Of a date of birth, some registers publish only the month. */
function faultOfDate(data: string, { name, today }: About): string | null {
  const isBirth = name.endsWith("_DOB");
  const isMonth = isBirth && /^\d{4}-\d\d$/.test(data);
  const day = isMonth ? `${data}-01` : data;
  if (parseDate(day) === null)
    return isBirth ? "must be YYYY-MM-DD or YYYY-MM" : "must be a date, YYYY-MM-DD";
  if (day < (isBirth ? "1850-01-01" : "1000-01-01") || day > "2200-12-31") return "is out of range";
  const isPast = pastDates.some((ending) => name.endsWith(ending));
  return isPast && day > today ? "lies in the future" : null;
}

/** The words of fields for which the catalogue lists none: those of similar fields. */
const moreWords: Readonly<Record<string, readonly string[]>> = {
  BUSINESS_AML_VERDICT: ["CLEAR", "HIT", "NOT_RUN"],
  BUSINESS_REPRESENTATIVE_SIGNING_AUTHORITY: ["SOLE", "JOINT", "NONE"],
};

function faultOfEnum(data: string, { name, format = "" }: About): string | null {
  const listed = /[A-Z_]+(?:\|[A-Z_]+)+$/.exec(format)?.[0].split("|");
  return faultOfWord(data, listed ?? moreWords[name] ?? []);
}

function faultOfWord(data: string, words: readonly string[]): string | null {
  return words.includes(data) ? null : `must be one of ${words.join(", ")}`;
}

function faultOfInteger(data: string, { format }: About): string | null {
  if (/^(?:0|[1-9]\d{0,8})$/.test(data)) return null;
  if (format !== "or band") return "must be a whole number";
  const [, least, most] = /^(0|[1-9]\d{0,8})(?:-([1-9]\d{0,8})|\+)$/.exec(data) ?? [];
  const isRange = least !== undefined && (most === undefined || Number(least) <= Number(most));
  return isRange ? null : "must be a whole number, or a band such as `10-49` or `250+`";
}

function faultOfNumber(data: string, { name }: About): string | null {
  if (!/^(?:0|[1-9]\d{0,11})(?:\.\d{1,6})?$/.test(data)) return "must be a decimal number";
  return name.endsWith("_PERCENTAGE") && Number(data) > 100 ? "is more than 100" : null;
}

function isUrl(data: string): boolean {
  if (data.length > urlMax || !/^https?:\/\/[\x21-\x7e]+$/.test(data) || !URL.canParse(data))
    return false;
  const { username, password } = new URL(data);
  return username === "" && password === "";
}

function isChecksummed(data: string): boolean {
  const address = parseAddress(data);
  return address !== null && checksumAddress(address) === data;
}

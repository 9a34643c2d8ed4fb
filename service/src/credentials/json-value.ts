import { isRecord, isShowable } from "@svc/protocol";
import { parseDate } from "./calendar.ts";
import { isCountryCode } from "./country.ts";

/** The most characters of a JSON value. */
const jsonMax = 16_384;

/**
 * What is wrong with a JSON value, or null. It must have the shape that the catalogue prescribes for the field, if any,
 * and only texts that can be shown to people.
 *
 * @param about.today `YYYY-MM-DD`, the newest day that has begun anywhere
 */
export function faultOfJson(data: string, about: { field: string; today: string }): string | null {
  if (data.length > jsonMax) return `has more than ${jsonMax} characters`;
  let value: unknown;
  try {
    value = JSON.parse(data);
  } catch {
    return "must be JSON";
  }
  if (typeof value !== "object" || value === null) return "must be a JSON object or list";
  if (!areTextsShowable(value, 0)) return "holds texts that cannot be shown, or nests too deep";
  const shape = shapes[about.field];
  return shape === undefined || shape.fits(value, about.today) ? null : `must be ${shape.words}`;
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

type Fits = (value: unknown, today: string) => boolean;

const isText: Fits = (value) => typeof value === "string" && value.trim() !== "";
const isString: Fits = (value) => typeof value === "string";
const isList: Fits = (value) => Array.isArray(value);
const isDate: Fits = (value) => typeof value === "string" && parseDate(value) !== null;
const isPastDate: Fits = (value, today) => isDate(value, today) && String(value) <= today;
const isCountry: Fits = (value) => typeof value === "string" && isCountryCode(value);

const listOf =
  (fits: Fits): Fits =>
  (value, today) =>
    Array.isArray(value) && value.every((each) => fits(each, today));

/**
 * An object with the needed members, and perhaps the others, which may be null. Further members are allowed: issuers
 * may add their own.
 */
const objectOf =
  (needed: Readonly<Record<string, Fits>>, others: Readonly<Record<string, Fits>> = {}): Fits =>
  (value, today) =>
    isRecord(value) &&
    Object.entries(needed).every(([name, fits]) => fits(value[name], today)) &&
    Object.entries(others).every(
      ([name, fits]) => isAbsent(value[name]) || fits(value[name], today),
    );

const isAbsent = (value: unknown): boolean => value === undefined || value === null;

/** `interestType` of the Beneficial Ownership Data Standard 0.4. */
const interestTypes: ReadonlySet<unknown> = new Set([
  "shareholding",
  "votingRights",
  "appointmentOfBoard",
  "otherInfluenceOrControl",
  "seniorManagingOfficial",
  "settlor",
  "trustee",
  "protector",
  "beneficiaryOfLegalArrangement",
  "rightsToSurplusAssetsOnDissolution",
  "rightsToProfitOrIncome",
  "rightsGrantedByContract",
  "conditionalRightsGrantedByContract",
  "controlViaCompanyRulesOrArticles",
  "controlByLegalFramework",
  "boardMember",
  "boardChair",
  "unknownInterest",
  "unpublishedInterest",
  "enjoymentAndUseOfAssets",
  "rightToProfitOrIncomeFromAssets",
  "nominee",
  "nominator",
]);

interface Shape {
  readonly fits: Fits;
  readonly words: string;
}

const screening: Shape = {
  fits: objectOf({}, { provider: isText, lists: isList, checkedAt: isText }),
  words: "an object; `provider` and `checkedAt` are texts, `lists` a list, where it has them",
};

/** The fields for which the catalogue prescribes a shape; others hold any object or list. */
const shapes: Readonly<Record<string, Shape | undefined>> = {
  IDCARD_AML_DETAIL: screening,
  PASSPORT_AML_DETAIL: screening,
  RESIDENCE_PERMIT_AML_DETAIL: screening,
  DRIVER_LICENSE_AML_DETAIL: screening,
  DRIVER_LICENSE_CATEGORIES: {
    fits: listOf(
      objectOf({ category: isText }, { issueDate: isPastDate, expiryDate: isDate, codes: isList }),
    ),
    words:
      "a list of objects with `category`, and perhaps `issueDate`, not in the future, `expiryDate` and `codes`",
  },
  TAX_RESIDENCES: {
    // Not every country gives every person a number.
    fits: listOf(objectOf({ country: isCountry }, { tin: isString })),
    words: "a list of objects with `country`, of ISO 3166-1 alpha-3, and perhaps `tin`, a text",
  },
  BUSINESS_FORMER_NAMES: {
    fits: listOf(objectOf({ name: isText }, { until: isText })),
    words: "a list of objects with `name`, and perhaps `until`",
  },
  BUSINESS_PUBLIC_LISTING: {
    fits: objectOf({}, { mic: isText, isin: isText, ticker: isText }),
    words: "an object; `mic`, `isin` and `ticker` are texts, where it has them",
  },
  BUSINESS_UBO_NATURE_OF_CONTROL: {
    fits: listOf((value) => interestTypes.has(value)),
    words: "a list of interest types of BODS 0.4",
  },
};

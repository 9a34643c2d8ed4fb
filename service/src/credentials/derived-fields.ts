import type { FieldName } from "@svc/protocol";
import { birthday, type Day, dayOf, parseDate, startOfMonth, yearsBetween } from "./calendar.ts";
import { isInEuEfta } from "./country.ts";

/** A field with its value and its end, Unix seconds. */
export interface FieldValue {
  readonly field: FieldName;
  readonly data: string;
  readonly expiresAt: number;
}

const ageLimits = [16, 18, 21, 65] as const;

/**
 * The fields that follow from a document's fields: ages from its date of birth, EU or EFTA from nationality and
 * address. Each ends with the document, or when its value changes if that is sooner, rounded down to the first of a
 * month so that the end does not give away a birthday (decisions section 4, Derived fields). So in the month of the
 * change it has already ended.
 *
 * @param fields of one document, checked
 * @param times.now Unix seconds
 * @param times.expiresAt the document's own end
 */
export function deriveFields(
  fields: readonly { readonly field: FieldName; readonly data: string }[],
  times: { readonly now: number; readonly expiresAt: number },
): FieldValue[] {
  const find = (ending: string): string | undefined =>
    fields.find(({ field }) => field.endsWith(ending))?.data;
  const born = parseDate(find("_DOB") ?? "");
  const nationality = find("_NATIONALITY");
  const residence = fields.find(({ field }) => field === "ADDRESS_COUNTRY")?.data;
  const until = startOfMonth(times.expiresAt);
  const place = (field: FieldName, countries: string): FieldValue => ({
    field,
    data: String(countries.split(",").some(isInEuEfta)),
    expiresAt: until,
  });
  return [
    ...(born === null ? [] : deriveAges(born, times)),
    ...(nationality === undefined ? [] : [place("NATIONALITY_IN_EU_EFTA", nationality)]),
    ...(residence === undefined ? [] : [place("RESIDENCE_IN_EU_EFTA", residence)]),
  ];
}

function deriveAges(born: Day, times: { now: number; expiresAt: number }): FieldValue[] {
  // Not below 0: the day of birth may have begun in the far east but not yet in UTC.
  const years = Math.max(0, yearsBetween(born, dayOf(times.now)));
  const until = (change: number): number => startOfMonth(Math.min(times.expiresAt, change));
  const limits = ageLimits.map((limit) => {
    const isOver = years >= limit;
    return {
      field: `AGE_OVER_${limit}` as const,
      data: String(isOver),
      expiresAt: isOver ? startOfMonth(times.expiresAt) : until(birthday(born, limit)),
    };
  });
  return [
    ...limits,
    { field: "AGE_IN_YEARS", data: String(years), expiresAt: until(birthday(born, years + 1)) },
    { field: "AGE_BIRTH_YEAR", data: String(born.year), expiresAt: startOfMonth(times.expiresAt) },
  ];
}

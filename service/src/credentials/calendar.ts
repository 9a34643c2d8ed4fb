/** A day of the Gregorian calendar. */
export interface Day {
  readonly year: number;
  /** 1 to 12. */
  readonly month: number;
  /** 1 to 31. */
  readonly day: number;
}

/** Reads `YYYY-MM-DD`; null for another form and for days that do not exist. */
export function parseDate(text: string): Day | null {
  const match = /^(\d{4})-(\d\d)-(\d\d)$/.exec(text);
  if (match === null) return null;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const date = new Date(Date.UTC(year, month - 1, day));
  const exists =
    date.getUTCFullYear() === year && date.getUTCMonth() === month - 1 && date.getUTCDate() === day;
  return exists ? { year, month, day } : null;
}

/** Whether a text is a time of RFC 3339. */
export function isTime(text: string): boolean {
  const form =
    /^(\d{4}-\d\d-\d\d)T(?:[01]\d|2[0-3])(?::[0-5]\d){2}(?:\.\d{1,9})?(?:Z|[+-](?:[01]\d|2[0-3]):[0-5]\d)$/;
  const [, day = ""] = form.exec(text) ?? [];
  return parseDate(day) !== null;
}

/** The day of a time in Unix seconds, UTC. */
export function dayOf(seconds: number): Day {
  const date = new Date(seconds * 1000);
  return {
    year: date.getUTCFullYear(),
    month: date.getUTCMonth() + 1,
    day: date.getUTCDate(),
  };
}

/** The offset of the time zone in which a day begins first: UTC+14, on the Line Islands. */
const farEastSeconds = 14 * 3600;

/** `YYYY-MM-DD` of the newest day that has begun anywhere on earth at a time in Unix seconds. */
export function newestDate(seconds: number): string {
  return new Date((seconds + farEastSeconds) * 1000).toISOString().slice(0, 10);
}

/**
 * Unix seconds at which the day begins, UTC. A day that a month does not have counts as the first of the next month.
 */
function startOf({ year, month, day }: Day): number {
  return Date.UTC(year, month - 1, day) / 1000;
}

/** Unix seconds at which the month of that time began, UTC. */
export function startOfMonth(seconds: number): number {
  const { year, month } = dayOf(seconds);
  return startOf({ year, month, day: 1 });
}

/** Whole years between the two days; from a 29 February, a year is full on 1 March. */
export function yearsBetween(from: Day, to: Day): number {
  const hasPassed = to.month > from.month || (to.month === from.month && to.day >= from.day);
  return to.year - from.year - (hasPassed ? 0 : 1);
}

/** Unix seconds at which somebody born on that day turns this many years old, UTC. */
export function birthday(born: Day, years: number): number {
  return startOf({ ...born, year: born.year + years });
}

import { isRecord } from "@svc/protocol";

/**
 * Writes a result for people: a list of records, or a page of one, as an aligned table, one record as lines of name and
 * value, with a table below for each list of records in it.
 */
export function forPeople(value: unknown): string {
  if (Array.isArray(value)) return table(value.map(recordOf));
  if (isRecord(value) && Array.isArray(value["items"])) {
    const { items, ...page } = value;
    return forPeople(items) + lines(page);
  }
  if (isRecord(value)) return lines(value) + tablesOf(value);
  return `${cell("", value)}\n`;
}

function table(records: readonly Record<string, unknown>[]): string {
  if (records.length === 0) return "none\n";
  const columns = [...new Set(records.flatMap((record) => Object.keys(record)))];
  const rows = [
    columns,
    ...records.map((record) => columns.map((column) => cell(column, record[column]))),
  ];
  const widths = columns.map((_column, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0)));
  return rows
    .map(
      (row) =>
        `${row
          .map((text, at) => text.padEnd(widths[at] ?? 0))
          .join("  ")
          .trimEnd()}\n`,
    )
    .join("");
}

const isTable = (value: unknown): value is Record<string, unknown>[] =>
  Array.isArray(value) && value.length > 0 && value.every(isRecord);

function tablesOf(record: Record<string, unknown>): string {
  return Object.entries(record)
    .map(([name, value]) => (isTable(value) ? `\n${name}\n${table(value)}` : ""))
    .join("");
}

function lines(record: Record<string, unknown>): string {
  const shown = Object.entries(record).filter(([, value]) => !isTable(value));
  const width = Math.max(0, ...shown.map(([name]) => name.length));
  return shown
    .map(([name, value]) => `${name.padEnd(width)}  ${cell(name, value)}`.trimEnd() + "\n")
    .join("");
}

/** Times are Unix seconds in JSON and dates for people; an absent value is a dash. */
function cell(name: string, value: unknown): string {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "number" && /(?:At|Since|From|^now)$/.test(name))
    return new Date(value * 1000).toISOString().replace(".000", "");
  if (Array.isArray(value))
    return value.length === 0 ? "-" : value.map((each) => cell("", each)).join(", ");
  return shownText(typeof value === "string" ? value : JSON.stringify(value));
}

/** Makes a text safe to show within one line, since somebody else may have chosen a part of it. */
export function shownText(text: string): string {
  return text.replaceAll(misleading, nameOfCharacter);
}

/** Characters that control a terminal, break a line or change the reading direction. */
const misleading = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_Control}]/gu;

/** The code of a character in place of it. */
function nameOfCharacter(character: string): string {
  const code = (character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0");
  return `<U+${code}>`;
}

function recordOf(value: unknown): Record<string, unknown> {
  return isRecord(value) ? value : { value };
}

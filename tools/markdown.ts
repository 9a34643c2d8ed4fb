// How the generated pages are written; tables are padded as oxfmt pads them.

export function code(text: string): string {
  return `\`${text}\``;
}

/** The lines of a table. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const cells = [head, ...rows].map((row) => row.map((cell) => cell.replaceAll("|", "\\|")));
  const widths = head.map((_, at) => Math.max(3, ...cells.map((row) => row[at]?.length ?? 0)));
  const line = (row: readonly string[]): string =>
    `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`;
  const [first = "", ...rest] = cells.map(line);
  return [first, line(widths.map((width) => "-".repeat(width))), ...rest];
}

/** A whole page out of its lines. */
export function page(lines: readonly string[]): string {
  return `${lines.join("\n")}\n`;
}

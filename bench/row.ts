/** One line of the result. `peer` is null where there is nothing to compare with. */
export interface Row {
  readonly name: string;
  readonly unit: "ms" | "calls" | "MiB" | "KiB" | "B" | "s" | "gas";
  readonly ours: number;
  readonly peer: number | null;
  readonly target: Target;
}

export type Target =
  /** Peer divided by ours, at least. */
  | { readonly kind: "times-cheaper"; readonly least: number }
  /** Ours divided by the peer's, at most. */
  | { readonly kind: "share-of-peer"; readonly most: number }
  | { readonly kind: "at-most"; readonly most: number }
  /**
   * Depends on the machine, or has no target: printed, never judged. `aim` is what it should be; the ratio is as that of
   * `share-of-peer` where it says so, or else as that of `times-cheaper`.
   */
  | { readonly kind: "printed"; readonly aim?: number; readonly isShare?: true };

export type Verdict = "ok" | "FAIL" | "-";

export function ratioOf({ ours, peer, target }: Row): number | null {
  if (peer === null) return null;
  const isShare =
    target.kind === "share-of-peer" || (target.kind === "printed" && target.isShare === true);
  return isShare ? ours / peer : peer / ours;
}

export function verdictOf(row: Row): Verdict {
  const { target } = row;
  const ratio = ratioOf(row);
  if (target.kind === "printed") return "-";
  if (target.kind === "at-most") return row.ours <= target.most ? "ok" : "FAIL";
  if (ratio === null) return "FAIL";
  return (target.kind === "times-cheaper" ? ratio >= target.least : ratio <= target.most)
    ? "ok"
    : "FAIL";
}

export function hasFailed(rows: readonly Row[]): boolean {
  return rows.some((row) => verdictOf(row) === "FAIL");
}

/** The cells of a row as text. */
export function cellsOf(row: Row): string[] {
  const ratio = ratioOf(row);
  return [
    row.name,
    `${figure(row.ours)} ${row.unit}`,
    row.peer === null ? "" : `${figure(row.peer)} ${row.unit}`,
    ratio === null ? "" : `${ratio.toFixed(2)}x`,
    targetText(row),
    verdictOf(row),
  ];
}

export const columnNames = ["", "svc", "oidc-provider", "ratio", "target", "verdict"];
export const kybColumnNames = ["", "svc", "Safe 1.5.0", "ratio", "target", "verdict"];
/** For tables in which each row says itself what it is compared with. */
export const kycColumnNames = ["", "svc", "beside", "ratio", "target", "verdict"];

function targetText({ target, unit }: Row): string {
  if (target.kind === "times-cheaper") return `>= ${target.least}x cheaper`;
  if (target.kind === "share-of-peer") return `<= ${target.most}x`;
  if (target.kind === "at-most") return `<= ${target.most} ${unit}`;
  return target.aim === undefined ? "" : `(${target.aim} ${unit})`;
}

/** Three significant digits, no exponent. */
function figure(value: number): string {
  if (value === 0) return "0";
  const digits = Math.max(0, 2 - Math.floor(Math.log10(Math.abs(value))));
  return value.toFixed(Math.min(digits, 3));
}

export function alignedTable(rows: readonly Row[], names: readonly string[] = columnNames): string {
  const lines = [names, ...rows.map(cellsOf)];
  const widths = columnNames.map((_, column) =>
    Math.max(...lines.map((cells) => cells[column]?.length ?? 0)),
  );
  const pad = (text: string, column: number): string =>
    isNumber(column) ? text.padStart(widths[column] ?? 0) : text.padEnd(widths[column] ?? 0);
  return lines.map((cells) => cells.map(pad).join("  ").trimEnd()).join("\n");
}

/** The figures stand to the right, the words to the left. */
function isNumber(column: number): boolean {
  return column >= 1 && column <= 3;
}

/** One line for each target that was missed. */
export function failureLines(rows: readonly Row[]): string[] {
  return rows
    .filter((row) => verdictOf(row) === "FAIL")
    .map((row) => {
      const [name, ours, peer, ratio, target] = cellsOf(row);
      return `FAIL ${name}: ${ours}${peer === "" ? "" : ` against ${peer}, ${ratio}`}; target ${target}`;
    });
}

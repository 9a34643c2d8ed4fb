import { ratioOf, type Row } from "./row.ts";

const width = 720;
const labelWidth = 270;
const barHeight = 12;
const rowHeight = 42;
const suffix = ", eight at a time";

/** CPU per operation of both sides as bars; each pair has its own scale, the longer bar fills the width. */
export function performancePlot(rows: readonly Row[]): string {
  const shown = rows.filter(
    (row) => row.peer !== null && row.unit === "ms" && row.name.endsWith(suffix),
  );
  const height = 56 + shown.length * rowHeight;
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img" aria-label="CPU per operation">
<style>text{font:13px system-ui,sans-serif;fill:#1f2328}.ours{fill:#0969da}.peer{fill:#8c959f}@media (prefers-color-scheme:dark){text{fill:#e6edf3}.ours{fill:#58a6ff}.peer{fill:#6e7681}}</style>
<rect class="ours" x="0" y="8" width="12" height="12"/><text x="18" y="19">svc</text>
<rect class="peer" x="64" y="8" width="12" height="12"/><text x="82" y="19">oidc-provider 9.13.3, CPU ms per operation; its cost is so many times ours</text>
${shown.map(pairOfBars).join("\n")}
</svg>
`;
}

function pairOfBars(row: Row, index: number): string {
  const peer = row.peer ?? 0;
  const room = width - labelWidth - 150;
  const length = (value: number): string => ((value / Math.max(row.ours, peer)) * room).toFixed(1);
  const y = 44 + index * rowHeight;
  const isShare = row.target.kind === "share-of-peer";
  const ratio = ratioOf(row) ?? 0;
  const text = `${(isShare ? 1 / ratio : ratio).toFixed(2)}x`;
  return `<text x="0" y="${y + 18}">${row.name.slice(0, -suffix.length)}</text>
<rect class="ours" x="${labelWidth}" y="${y}" width="${length(row.ours)}" height="${barHeight}" rx="2"/>
<rect class="peer" x="${labelWidth}" y="${y + barHeight + 2}" width="${length(peer)}" height="${barHeight}" rx="2"/>
<text x="${width}" y="${y + 18}" text-anchor="end">${row.ours.toFixed(2)} / ${peer.toFixed(2)}, ${text}</text>`;
}

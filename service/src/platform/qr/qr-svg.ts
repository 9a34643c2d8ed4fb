import { encodeQR } from "qr";

/** Light modules around the symbol (ISO/IEC 18004 asks for four). */
const quietZone = 4;
/**
 * Fixed, because for text as random as ours the best of the eight masks is hardly better, and choosing it would be a
 * third of the work.
 */
const mask = 3;

/**
 * Draws `text` as a QR code in one SVG path, dark on transparent: the page gives it a light background in every colour
 * scheme. Error correction L, because a screen has no dirt and larger modules can be read from further away.
 *
 * The element is markup ready for a page; `text` itself is not part of it.
 *
 * @throws {Error} when the text is longer than a QR code holds (2,953 bytes)
 */
export function qrSvg(text: string): string {
  const matrix = encodeQR(text, "raw", { ecc: "low", border: quietZone, mask });
  const view = `0 0 ${matrix.length} ${matrix.length}`;
  return `<svg viewBox="${view}" shape-rendering="crispEdges" aria-hidden="true"><path stroke="#000" d="${pathOf(matrix)}"/></svg>`;
}

/** Each run of dark modules is a stroke of width 1 along the middle of its line; moves inside a line are relative. */
function pathOf(matrix: readonly boolean[][]): string {
  let path = "";
  for (const [y, modules] of matrix.entries()) {
    let end = -1;
    for (let x = 0; x < modules.length; x++) {
      if (modules[x] !== true) continue;
      const start = x;
      while (modules[x + 1] === true) x++;
      path += end < 0 ? `M${start} ${y}.5` : `m${start - end} 0`;
      end = x + 1;
      path += `h${end - start}`;
    }
  }
  return path;
}

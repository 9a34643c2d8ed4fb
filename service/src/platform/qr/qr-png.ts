import { crc32, deflateSync } from "node:zlib";
import { encodeQR } from "qr";

/** Pixels per module: sharp on dense screens, and a module is exactly half a byte. */
const scale = 4;
/** Light modules around the symbol (ISO/IEC 18004 asks for four). */
const quietZone = 4;
/** Level 3 is within a few per cent of level 9 on these rows at half its time. */
const deflateLevel = 3;
/** The answer fits in one small chunk; the default of 16 KiB costs a third of the time. */
const deflateChunkBytes = 2048;
const upFilter = 2;
const signature = Buffer.from("89504e470d0a1a0a", "hex");
const end = chunk("IEND", Buffer.alloc(0));

/**
 * Draws `text` as a QR code in a one-bit greyscale PNG: error correction M, 4 pixels per module, quiet zone included.
 *
 * @throws {Error} when the text is longer than a QR code holds (2,331 bytes)
 * @see https://www.w3.org/TR/png-3/ sections 5, 9 and 11
 */
export function qrPng(text: string): Buffer {
  const matrix = encodeQR(text, "raw", { ecc: "medium", border: quietZone });
  const pixels = matrix.length * scale;
  const header = Buffer.alloc(13);
  header.writeUInt32BE(pixels, 0);
  header.writeUInt32BE(pixels, 4);
  header[8] = 1; // one bit per pixel; colour type, compression, filter and interlace stay 0
  const data = deflateSync(filterLines(matrix), {
    level: deflateLevel,
    chunkSize: deflateChunkBytes,
  });
  return Buffer.concat([signature, chunk("IHDR", header), chunk("IDAT", data), end]);
}

/** With the Up filter a line holds its difference from the line above, so three out of four lines are zeros. */
function filterLines(matrix: readonly boolean[][]): Uint8Array {
  const stride = 1 + Math.ceil((matrix.length * scale) / 8);
  const lines = new Uint8Array(stride * matrix.length * scale);
  for (let at = 0; at < lines.length; at += stride) lines[at] = upFilter;
  const above = new Uint8Array(stride);
  let start = 1;
  for (const modules of matrix) {
    for (let at = 0; at < stride - 1; at++) {
      // Two modules make a byte, light is 1; beyond the edge the bits mean nothing.
      const byte =
        (modules[2 * at] === true ? 0 : 0xf0) | (modules[2 * at + 1] === true ? 0 : 0x0f);
      lines[start + at] = byte - (above[at] ?? 0);
      above[at] = byte;
    }
    start += scale * stride;
  }
  return lines;
}

function chunk(type: string, data: Uint8Array): Buffer {
  const bytes = Buffer.alloc(12 + data.length);
  bytes.writeUInt32BE(data.length, 0);
  bytes.write(type, 4, "latin1");
  bytes.set(data, 8);
  bytes.writeUInt32BE(crc32(bytes.subarray(4, 8 + data.length)), 8 + data.length);
  return bytes;
}

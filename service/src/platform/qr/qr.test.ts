import assert from "node:assert/strict";
import { test } from "node:test";
import { crc32, inflateSync } from "node:zlib";
import { decodeQR } from "qr/decode.js";
import { qrPng } from "./qr-png.ts";
import { qrSvg } from "./qr-svg.ts";

const link = `svc:request?conn=https%3A%2F%2Flogin.example.com%2Fw%2Fk%2FgK3dYy3u9Qm0pQ2hS1xYVw&from=0x1f9840a85d5af5bf1d1762f925bdaddc4201f984&dl=1790000000&attr=idcard-dob,idcard-name&id=gK3dYy3u9Qm0pQ2hS1&type=callback`;
const texts = [link, "svc:login?sess=a&conn=b", "ü€𐍈", "x".repeat(1200)];

test("a PNG holds the QR code of its text", () => {
  for (const text of texts) assert.equal(decodeQR(pixelsOfPng(qrPng(text))), text);
});

test("a PNG of a link of 200 characters has at most 1.5 kB", () => {
  assert.ok(link.length >= 200, String(link.length));
  assert.ok(qrPng(link).length <= 1500, String(qrPng(link).length));
});

test("a PNG costs at most 0.6 ms of CPU: 0.3 ms by the bench, twice that on a busy machine", () => {
  for (let round = 0; round < 300; round++) qrPng(link);
  const rounds = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    for (let round = 0; round < 200; round++) qrPng(link);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 200_000;
  });
  assert.ok(Math.min(...rounds) <= 0.6, `${Math.min(...rounds)} ms`);
});

test("a PNG has four light modules around the symbol", () => {
  const { width, data } = pixelsOfPng(qrPng("svc:login"));
  const isLight = (x: number, y: number): boolean => data[4 * (y * width + x)] === 255;
  for (let along = 0; along < width; along++)
    for (let deep = 0; deep < 16; deep++)
      for (const [x, y] of [
        [along, deep],
        [deep, along],
        [along, width - 1 - deep],
        [width - 1 - deep, along],
      ] as const)
        assert.ok(isLight(x, y), `${x} ${y}`);
  assert.ok(!isLight(16, 16), "the finder starts right after it");
});

test("an SVG holds the QR code of its text in one path", () => {
  for (const text of texts) {
    const svg = qrSvg(text);
    assert.equal(svg.match(/<path/g)?.length, 1);
    assert.equal(decodeQR(pixelsOfSvg(svg)), text);
  }
});

test("an SVG carries neither styles nor scripts nor its text", () => {
  assert.doesNotMatch(qrSvg(`<script>"'svc:`), /style|script|svc/);
});

interface Pixels {
  width: number;
  height: number;
  data: Uint8Array;
}

/** A reader of its own, straight from the PNG specification, for one-bit greyscale with the None and Up filters. */
function pixelsOfPng(png: Buffer): Pixels {
  assert.equal(png.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < png.length;) {
    const length = png.readUInt32BE(at);
    const type = png.toString("latin1", at + 4, at + 8);
    assert.equal(png.readUInt32BE(at + 8 + length), crc32(png.subarray(at + 4, at + 8 + length)));
    chunks.set(type, png.subarray(at + 8, at + 8 + length));
    at += 12 + length;
  }
  assert.deepEqual([...chunks.keys()], ["IHDR", "IDAT", "IEND"]);
  const header = chunks.get("IHDR")!;
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  assert.deepEqual([...header.subarray(8)], [1, 0, 0, 0, 0]);
  const lines = inflateSync(chunks.get("IDAT")!);
  const stride = 1 + Math.ceil(width / 8);
  assert.equal(lines.length, stride * height);
  const data = new Uint8Array(width * height * 4).fill(255);
  let above = new Uint8Array(stride - 1);
  for (let y = 0; y < height; y++) {
    assert.equal(lines[y * stride], 2);
    above = lines.subarray(y * stride + 1, (y + 1) * stride).map((byte, at) => byte + above[at]!);
    for (let x = 0; x < width; x++)
      data.fill(
        ((above[x >> 3]! >> (7 - (x & 7))) & 1) * 255,
        4 * (y * width + x),
        4 * (y * width + x) + 3,
      );
  }
  return { width, height, data };
}

/** Paints the strokes of the path, 3 pixels a module, on white. */
function pixelsOfSvg(svg: string): Pixels {
  const side = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)?.[1]);
  const width = side * 3;
  const data = new Uint8Array(width * width * 4).fill(255);
  const path = / d="([^"]*)"/.exec(svg)?.[1] ?? "";
  let [x, y] = [0, 0];
  for (const [, absoluteX, absoluteY, gap, run] of path.matchAll(
    /M(\d+) (\d+)\.5|m(\d+) 0|h(\d+)/g,
  )) {
    if (absoluteX !== undefined) [x, y] = [Number(absoluteX), Number(absoluteY)];
    x += Number(gap ?? 0);
    for (let row = 3 * y; row < 3 * y + 3; row++)
      for (let column = 3 * x; column < 3 * (x + Number(run ?? 0)); column++)
        data.fill(0, 4 * (row * width + column), 4 * (row * width + column) + 3);
    x += Number(run ?? 0);
  }
  return { width, height: width, data };
}

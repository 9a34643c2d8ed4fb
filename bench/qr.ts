import { randomBytes } from "node:crypto";
import { qrPng } from "../service/src/platform/qr/qr-png.ts";
import type { Row } from "./row.ts";

const warmUp = 500;
const drawings = 2000;

/** CPU time and size of the QR code of a login, drawn as PNG in this process. */
export function benchQr(): Row[] {
  const texts = Array.from({ length: drawings }, loginLink);
  for (const text of texts.slice(0, warmUp)) qrPng(text);
  const before = process.cpuUsage();
  const sizes = texts.map((text) => qrPng(text).length);
  const { user, system } = process.cpuUsage(before);
  return [
    {
      name: "QR code as PNG, CPU",
      unit: "ms",
      ours: (user + system) / 1000 / drawings,
      peer: null,
      target: { kind: "at-most", most: 0.3 },
    },
    {
      name: "QR code as PNG, largest",
      unit: "B",
      ours: Math.max(...sizes),
      peer: null,
      target: { kind: "at-most", most: 1500 },
    },
  ];
}

function loginLink(): string {
  const id = randomBytes(16).toString("base64url");
  const connection = encodeURIComponent(`https://id.example.com/w/l/${id}`);
  return `svc:login?sess=${id}.445678901.${randomBytes(16).toString("base64url")}&conn=${connection}&type=callback`;
}

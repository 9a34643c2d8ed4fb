import type { Hex } from "@svc/protocol";

/** Bytes of hex that has been checked: unlike `bytesOfHex`, it does not report an invalid digit, but ends before it. */
export function bufferOfHex(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

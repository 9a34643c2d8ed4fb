import type { Hex } from "@svc/protocol";

/** Bytes of hex that was checked before: a digit that is none would end them early, where `bytesOfHex` tells. */
export function bufferOfHex(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

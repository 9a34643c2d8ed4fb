import type { Hex } from "@svc/protocol";

/**
 * Bytes of hex that has been checked before: an invalid digit would end them early, whereas `bytesOfHex` reports it.
 */
export function bufferOfHex(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

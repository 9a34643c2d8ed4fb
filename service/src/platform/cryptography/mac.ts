import { createHmac, type KeyObject, timingSafeEqual } from "node:crypto";

/** HMAC-SHA256 (32 bytes). Pass the key as KeyObject: raw bytes cost several times as much per call. */
export function mac(key: KeyObject, content: string | Uint8Array): Buffer {
  return createHmac("sha256", key).update(content).digest();
}

/**
 * Whether two byte strings are equal, in a time that does not depend on where they differ. The lengths are public:
 * compare values of fixed length, or their hashes.
 */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && timingSafeEqual(a, b);
}

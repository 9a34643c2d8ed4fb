import { sha256 } from "@noble/hashes/sha2";

import { bytesOfText, hexOfBytes } from "./encoding.ts";

/**
 * The fingerprint under which a text is signed: SHA-256 of its UTF-8 bytes, 64 lower-case hex digits,
 * without `0x` (service document, "Deep-link URI protocol").
 */
export function textFingerprint(text: string): string {
  return hexOfBytes(sha256(bytesOfText(text))).slice(2);
}

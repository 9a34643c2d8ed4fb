import { hash } from "node:crypto";

/**
 * SHA-256 of a text in UTF-8. It may be stored in place of a secret of 128 random bits or more, which nobody finds by
 * trying; a password would need a slow hash.
 */
export function sha256(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

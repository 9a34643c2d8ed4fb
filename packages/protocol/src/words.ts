// The 32-byte words of `abi.encode`, written into buffers that hot paths reuse.
import { bytesOfHex } from "./encoding.ts";

/** The bytes of a hex text of exactly `size` bytes. @throws {TypeError} for anything else */
export function bytesOfSize(hex: string, size: number): Uint8Array {
  const bytes = bytesOfHex(hex);
  if (bytes?.length !== size) throw new TypeError(`a member is not ${size} bytes in hex`);
  return bytes;
}

/** Writes bytes at the end of the word that begins at `at`, zeros before them. */
export function writeWord(words: Uint8Array, at: number, bytes: Uint8Array): void {
  words.fill(0, at, at + 32 - bytes.length);
  words.set(bytes, at + 32 - bytes.length);
}

/** Writes a whole number into the word that begins at `at`. @throws {TypeError} for fractions, negatives and beyond 2^53 - 1 */
export function writeInteger(words: Uint8Array, at: number, value: number): void {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new TypeError("a time or count is a whole number, zero or more");
  }
  words.fill(0, at, at + 32);
  for (let index = at + 31, rest = value; rest > 0; index -= 1) {
    words[index] = rest % 256;
    rest = Math.floor(rest / 256);
  }
}

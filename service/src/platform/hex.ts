import { type Hex, type Hex32, hexOfBytes, keccak256 } from "@svc/protocol";

/** Bytes of hex that has been checked: unlike `bytesOfHex`, it does not report an invalid digit, but ends before it. */
export function bufferOfHex(hex: Hex): Buffer {
  return Buffer.from(hex.slice(2), "hex");
}

/**
 * keccak256 of bytes in hex. That of viem takes ten times as long: to plan, sign, admit and check the contracts of a first
 * start took 25 ms of CPU time with it.
 */
export function keccakOfHex(hex: Hex): Uint8Array {
  return keccak256(bufferOfHex(hex));
}

const hashBytes = 32;

/** Hashes, such as the leaves of a tree, as one value, the way they are stored. */
export function joinHashes(hashes: readonly Hex32[]): Buffer {
  return Buffer.concat(hashes.map(bufferOfHex));
}

/** Takes apart what {@link joinHashes} joined. */
export function splitHashes(joined: Buffer): Hex32[] {
  return Array.from({ length: Math.ceil(joined.length / hashBytes) }, (_, at) =>
    hexOfBytes(joined.subarray(at * hashBytes, (at + 1) * hashBytes)),
  );
}

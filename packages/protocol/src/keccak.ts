import { keccak_256 } from "@noble/hashes/sha3";
import { createKeccak } from "hash-wasm/dist/index.esm.js";

/**
 * The WebAssembly version, which takes a tenth of the time; null until it is compiled, and if a page's policy does not
 * allow it.
 */
let hasher: Awaited<ReturnType<typeof createKeccak>> | null = null;

async function compile(): Promise<void> {
  hasher = await createKeccak(256);
}
// Not awaited at the top level, so that the package can be loaded by `require`, too.
compile().catch(() => undefined);

/** keccak256 as Ethereum uses it, 32 bytes: not SHA3-256, which pads differently. */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return hasher === null ? keccak_256(bytes) : hasher.init().update(bytes).digest("binary");
}

import { createRequire } from "node:module";
import {
  addressOfPublicKey,
  type Address,
  type Hex,
  hexOfBytes,
  parseSignature,
} from "@svc/protocol";
import { recover, signRecoverable } from "tiny-secp256k1";

/** @returns the public key behind a signature, 65 bytes; null where there is none */
export type RecoverKey = (
  digest: Uint8Array,
  signature: { readonly compact: Uint8Array; readonly recovery: 0 | 1 },
) => Uint8Array | null;

/** WebAssembly of libsecp256k1, for every machine: 6 times the speed of plain JavaScript. */
export const recoverPortably: RecoverKey = (digest, { compact, recovery }) =>
  recover(digest, compact, recovery, false);

/**
 * The same library as it was built for this machine, again 6 times as fast; null where the package has no build for it.
 * Its own fallback in plain JavaScript is replaced (`overrides` in package.json) and never loaded.
 */
export const recoverNatively: RecoverKey | null = loadNative();

function loadNative(): RecoverKey | null {
  try {
    const require = createRequire(import.meta.url);
    const { ecdsaRecover } = require("secp256k1/bindings.js") as {
      ecdsaRecover: (...given: [Uint8Array, number, Uint8Array, boolean]) => Uint8Array;
    };
    return (digest, { compact, recovery }) => ecdsaRecover(compact, recovery, digest, false);
  } catch {
    return null;
  }
}

const recoverKey = recoverNatively ?? recoverPortably;

/**
 * The externally owned account that signed a digest, or null when the signature is malformed (65 bytes, low s, v 27 or 28)
 * or recovers to nothing.
 */
export function recoverAddress(digest: Uint8Array, signature: string): Address | null {
  const parsed = parseSignature(signature);
  if (parsed === null) return null;
  try {
    const publicKey = recoverKey(digest, parsed);
    return publicKey === null ? null : addressOfPublicKey(publicKey);
  } catch {
    // r or s out of range, or on no curve: no signature at all.
    return null;
  }
}

/** A signature as the chain writes it; s lies in the lower half (RFC 6979, no chance involved). */
export interface RecoverableSignature {
  readonly r: Hex;
  readonly s: Hex;
  readonly yParity: 0 | 1;
}

/** Signs a digest of 32 bytes. @throws when the key is none (zero, or not below the order) */
export function signDigest(digest: Uint8Array, privateKey: Uint8Array): RecoverableSignature {
  const { signature, recoveryId } = signRecoverable(digest, privateKey);
  return {
    r: hexOfBytes(signature.subarray(0, 32)),
    s: hexOfBytes(signature.subarray(32)),
    yParity: recoveryId === 1 ? 1 : 0,
  };
}

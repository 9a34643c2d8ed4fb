import { createRequire } from "node:module";
import {
  addressOfPublicKey,
  type Address,
  type Hex,
  hexOfBytes,
  parseSignature,
} from "@svc/protocol";
import type * as portable from "tiny-secp256k1";

/** The functions of libsecp256k1 that are used here. Each throws if a number is out of range. */
export interface Secp256k1 {
  /** @returns the public key behind a signature, 65 bytes; null if there is none */
  recover(digest: Uint8Array, signature: CompactSignature): Uint8Array | null;
  /** Signs by RFC 6979, deterministically; s is in the lower half. */
  sign(digest: Uint8Array, privateKey: Uint8Array): CompactSignature;
  /** @returns 65 bytes */
  publicKeyOf(privateKey: Uint8Array): Uint8Array;
}

interface CompactSignature {
  /** r and s, 32 bytes each. */
  readonly compact: Uint8Array;
  readonly recovery: 0 | 1;
}

const require = createRequire(import.meta.url);

/** The WebAssembly build, for any machine: 6 times as fast as plain JavaScript. */
export function loadPortable(): Secp256k1 {
  const { recover, signRecoverable, pointFromScalar } =
    require("tiny-secp256k1") as typeof portable;
  return {
    recover: (digest, { compact, recovery }) => recover(digest, compact, recovery, false),
    sign(digest, privateKey) {
      const { signature, recoveryId } = signRecoverable(digest, privateKey);
      return { compact: signature, recovery: recoveryId === 1 ? 1 : 0 };
    },
    publicKeyOf(privateKey) {
      const key = pointFromScalar(privateKey, false);
      if (key === null) throw new RangeError("a private key is none");
      return key;
    },
  };
}

/**
 * The native build for this machine, again 6 times as fast; null if the package has none. The package's own fallback in
 * plain JavaScript is not installed (`service/elliptic` takes its place) and never loaded.
 */
export function loadNative(): Secp256k1 | null {
  try {
    const { ecdsaRecover, ecdsaSign, publicKeyCreate } = require("secp256k1/bindings.js") as {
      ecdsaRecover: (...given: [Uint8Array, number, Uint8Array, boolean]) => Uint8Array;
      ecdsaSign: (...given: [Uint8Array, Uint8Array]) => { signature: Uint8Array; recid: number };
      publicKeyCreate: (...given: [Uint8Array, boolean]) => Uint8Array;
    };
    return {
      recover: (digest, { compact, recovery }) => ecdsaRecover(compact, recovery, digest, false),
      sign(digest, privateKey) {
        const { signature, recid } = ecdsaSign(digest, privateKey);
        return { compact: signature, recovery: recid === 1 ? 1 : 0 };
      },
      publicKeyOf: (privateKey) => publicKeyCreate(privateKey, false),
    };
  } catch {
    return null;
  }
}

/** The portable build is loaded only if it is needed, because it takes 9 MiB. */
const library = loadNative() ?? loadPortable();

/**
 * The externally owned account that signed a digest, or null when the signature is malformed (65 bytes, low s, v 27 or 28)
 * or recovers to nothing.
 */
export function recoverAddress(digest: Uint8Array, signature: string): Address | null {
  const parsed = parseSignature(signature);
  if (parsed === null) return null;
  try {
    const publicKey = library.recover(digest, parsed);
    return publicKey === null ? null : addressOfPublicKey(publicKey);
  } catch {
    // r or s is out of range or not on the curve, so this is not a signature.
    return null;
  }
}

/** The address of a private key. @throws when the bytes are not a secp256k1 key */
export function addressOfPrivateKey(privateKey: Uint8Array): Address {
  return addressOfPublicKey(library.publicKeyOf(privateKey));
}

/** A signature in the form that the chain uses; s is in the lower half (RFC 6979, no randomness involved). */
export interface RecoverableSignature {
  readonly r: Hex;
  readonly s: Hex;
  readonly yParity: 0 | 1;
}

/** Signs a digest of 32 bytes. @throws if the bytes are not a key (zero, or not below the order) */
export function signDigest(digest: Uint8Array, privateKey: Uint8Array): RecoverableSignature {
  const { compact, recovery } = library.sign(digest, privateKey);
  return {
    r: hexOfBytes(compact.subarray(0, 32)),
    s: hexOfBytes(compact.subarray(32)),
    yParity: recovery,
  };
}

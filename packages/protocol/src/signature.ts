import { secp256k1 } from "@noble/curves/secp256k1";
import { keccak256 } from "./keccak.ts";

import { addressOfPublicKey } from "./address.ts";
import type { Address } from "./address.ts";
import { bytesOfHex, bytesOfText, hexOfBytes } from "./encoding.ts";
import type { Hex } from "./encoding.ts";

/** ERC-6492 wraps a deployment around a signature; 16 KiB is ample for it, and for a wallet of many owners. */
const signatureBytesMax = 16_384;
/** The same as `0x` and hex. */
export const signatureCharactersMax = 2 + 2 * signatureBytesMax;

/** A secp256k1 signature that passed `parseSignature`. */
export interface Signature {
  /** r and s, 64 bytes. */
  compact: Uint8Array;
  /** Which of the two points with that r: the parity of its y. */
  recovery: 0 | 1;
}

const orderHex = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141";
const halfOrderHex = "7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0";

/**
 * Reads the signature of an externally owned account: `0x` and 65 bytes r, s, v; v is 27 or 28 and s is in the lower
 * half of the order, so that a signature has only one spelling. Null for anything else.
 *
 * @see decisions, section 3, "Signatures"; EIP-2
 */
export function parseSignature(text: string): Signature | null {
  if (text.length !== 132) return null;
  const lower = text.toLowerCase();
  const bytes = bytesOfHex(lower);
  const v = bytes?.[64];
  if (!bytes || (v !== 27 && v !== 28)) return null;
  const r = lower.slice(2, 66);
  const s = lower.slice(66, 130);
  // Fixed-width lower-case hex sorts as the numbers do.
  if (isZero(r) || r >= orderHex || isZero(s) || s > halfOrderHex) return null;
  return { compact: bytes.subarray(0, 64), recovery: v === 27 ? 0 : 1 };
}

const isZero = (digits: string): boolean => /^0*$/.test(digits);

/** The EIP-191 digest of a personal message, 32 bytes: what `svc:sign` signs. */
export function personalDigest(message: Uint8Array): Uint8Array {
  const prefix = bytesOfText(`\u0019Ethereum Signed Message:\n${message.length}`);
  const bytes = new Uint8Array(prefix.length + message.length);
  bytes.set(prefix);
  bytes.set(message, prefix.length);
  return keccak256(bytes);
}

/** The account that signed the digest, or null when the signature belongs to no key. */
export function recoverAddress(digest: Uint8Array, signature: Signature): Address | null {
  try {
    const point = secp256k1.Signature.fromCompact(signature.compact)
      .addRecoveryBit(signature.recovery)
      .recoverPublicKey(digest);
    return addressOfPublicKey(point.toRawBytes(false));
  } catch {
    // About half of all values of r are not on the curve, so this is the normal result for a made-up signature.
    return null;
  }
}

/** `isValidSignature.selector`, and zeros up to the end of the word. */
const contractYes = `0x1626ba7e${"0".repeat(56)}`;

/**
 * Whether this answer of `isValidSignature(bytes32,bytes)` means that the contract signed. The whole word counts, as
 * for anyone who decodes it by the ABI: the call itself begins with the same four bytes, and a contract that sends the
 * call back has signed nothing.
 *
 * @see ERC-1271
 */
export function isContractYes(answer: string): boolean {
  return answer.slice(0, contractYes.length).toLowerCase() === contractYes;
}

/**
 * For a process that signs a few times and ends: precomputes only a few multiples of the base point, in 15 ms instead
 * of the 80 that the first use would take. Signing takes a third longer then.
 */
export function prepareForFewSignatures(): void {
  secp256k1.utils.precompute(4);
}

/**
 * Signs a digest deterministically (RFC 6979) and writes what `parseSignature` reads.
 *
 * @param digest 32 bytes
 * @param privateKey 32 bytes
 * @throws when the key is not a secp256k1 key or the digest has another length
 */
export function signDigest(digest: Uint8Array, privateKey: Uint8Array): Hex {
  if (digest.length !== 32) throw new TypeError("a digest is 32 bytes");
  const signature = secp256k1.sign(digest, privateKey, { lowS: true });
  return `${hexOfBytes(signature.toCompactRawBytes())}${signature.recovery === 0 ? "1b" : "1c"}`;
}

/** The address of a private key. @throws when the bytes are not a secp256k1 key */
export function addressOfPrivateKey(privateKey: Uint8Array): Address {
  return addressOfPublicKey(secp256k1.getPublicKey(privateKey, false));
}

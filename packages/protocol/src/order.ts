// The names of a KYC order, and what is anchored of it on chain (decisions, section 5). No value, user or merchant can
// be read from any of these hashes.
import { sha256 } from "@noble/hashes/sha2";
import { keccak256 } from "./keccak.ts";

import type { Address } from "./address.ts";
import { bytesOfText, canonicalJson, hexOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { bytesOfSize, writeInteger } from "./words.ts";

/** The two phases of a settlement: the user's consent came in; the data was handed over. */
export const orderPhase = { initiate: 1, confirm: 2 } as const;
export type OrderPhase = (typeof orderPhase)[keyof typeof orderPhase];

/**
 * `referenceKey`: 64 lower-case hex digits without `0x`. The same request of the same package always has the same key:
 * names count once, in any order, and a name in both lists counts as required.
 *
 * @param given.sourceKey of the package; random, so that a key tells nothing about user or fields
 */
export function referenceKeyOf(given: {
  sourceKey: string;
  user: Address;
  required: readonly string[];
  optional: readonly string[];
}): string {
  const required = new Set(given.required);
  const optional = new Set(given.optional).difference(required);
  const parts = [
    "svc-order-v1",
    given.sourceKey,
    given.user,
    [...required].toSorted(),
    [...optional].toSorted(),
  ];
  return hexOfBytes(sha256(bytesOfText(canonicalJson(parts)))).slice(2);
}

/**
 * The id under which one attempt of an order is anchored: `keccak256(abi.encode(keccak256("Order(bytes32
 * referenceKey,uint32 attempt,bytes32 salt)"), referenceKey, attempt, salt))`.
 *
 * @param given.referenceKey as on the wire, without `0x`
 * @param given.attempt from 1
 * @param given.salt 32 random bytes of this attempt, so that nobody without the receipt can tell which leaf belongs to
 * the attempt
 * @throws {TypeError} when a member is not of its size
 */
export function orderIdOf(given: { referenceKey: string; attempt: number; salt: Hex32 }): Hex32 {
  if (given.attempt > 0xffff_ffff) throw new TypeError("an attempt fits into 32 bits");
  orderWords.set(bytesOfSize(`0x${given.referenceKey}`, 32), 32);
  writeInteger(orderWords, 64, given.attempt);
  orderWords.set(bytesOfSize(given.salt, 32), 96);
  return hexOfBytes(keccak256(orderWords));
}

/**
 * The leaf of an order in the tree of a batch: `keccak256(keccak256(abi.encode(keccak256("OrderLeaf(uint8
 * phase,bytes32 order,bytes32 consent,bytes32 data)"), phase, order, consent, data)))`.
 *
 * @param given.order `orderIdOf`
 * @param given.consent the EIP-712 digest of the user's `Share`
 * @param given.data the member `data` of that `Share`
 * @throws {TypeError} when a member is not of its size
 */
export function orderLeafOf(given: {
  phase: OrderPhase;
  order: Hex32;
  consent: Hex32;
  data: Hex32;
}): Hex32 {
  writeInteger(orderLeafWords, 32, given.phase);
  orderLeafWords.set(bytesOfSize(given.order, 32), 64);
  orderLeafWords.set(bytesOfSize(given.consent, 32), 96);
  orderLeafWords.set(bytesOfSize(given.data, 32), 128);
  return hexOfBytes(keccak256(keccak256(orderLeafWords)));
}

/**
 * The leaf by which a batch also anchors the head of the operator's audit chain: `keccak256(keccak256(
 * abi.encode(keccak256("AuditHead(bytes32 head,uint64 position)"), head, position)))`.
 *
 * @param given.position how many entries the chain has
 * @throws {TypeError} when a member is not of its size
 */
export function auditLeafOf(given: { head: Hex32; position: number }): Hex32 {
  auditWords.set(bytesOfSize(given.head, 32), 32);
  writeInteger(auditWords, 64, given.position);
  return hexOfBytes(keccak256(keccak256(auditWords)));
}

const orderWords = wordsOf("Order(bytes32 referenceKey,uint32 attempt,bytes32 salt)", 4);
const orderLeafWords = wordsOf(
  "OrderLeaf(uint8 phase,bytes32 order,bytes32 consent,bytes32 data)",
  5,
);
const auditWords = wordsOf("AuditHead(bytes32 head,uint64 position)", 3);

/** A buffer of this many words that begins with the hash of the type. */
function wordsOf(type: string, count: number): Uint8Array {
  const words = new Uint8Array(count * 32);
  words.set(keccak256(bytesOfText(type)));
  return words;
}

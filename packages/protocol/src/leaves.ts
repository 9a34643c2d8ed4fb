// Leaves of verified fields (decisions, section 4): what an issuer attests, a user releases and a merchant
// compares. Words are written into buffers that every call reuses (nothing here is asynchronous).
import { keccak256 } from "./keccak.ts";

import type { Address } from "./address.ts";
import { isFieldName } from "./attributes.ts";
import { bytesOfText, hexOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { bytesOfSize, writeInteger, writeWord } from "./words.ts";

const typeHash = keccak256(
  bytesOfText("Leaf(address user,bytes32 field,bytes32 commitment,uint64 expiresAt)"),
);

/** keccak256 of the type of a leaf; its first word. */
export const LEAF_TYPEHASH: Hex32 = hexOfBytes(typeHash);

/** What a leaf says: this user's field has the committed value until `expiresAt`. */
export interface LeafOpening {
  user: Address;
  /** The concrete field name, as in the catalogue. */
  field: string;
  /** `commitmentOf` the value. */
  commitment: Hex32;
  /** Unix seconds; always a time, since every document ends. */
  expiresAt: number;
}

/**
 * The leaf of one verified field: `keccak256(keccak256(abi.encode(LEAF_TYPEHASH, user, keccak256(field),
 * commitment, expiresAt)))`. Hashed twice, so that no inner node of a tree can pass as a leaf.
 *
 * @throws {TypeError} when a member is not of its size
 */
export function leafOf(opening: LeafOpening): Hex32 {
  writeWord(leafWords, 32, bytesOfSize(opening.user, 20));
  leafWords.set(hashOfField(opening.field), 64);
  leafWords.set(bytesOfSize(opening.commitment, 32), 96);
  writeInteger(leafWords, 128, opening.expiresAt);
  return hexOfBytes(keccak256(keccak256(leafWords)));
}

/**
 * The commitment to a value: `keccak256(abi.encode(keccak256(data), pepper))`. Without the pepper a value of
 * few possibilities, such as a date of birth, cannot be found by trying them all.
 *
 * @param given.data the value as text; an image is its Base64 text
 * @param given.pepper 32 random bytes of this user, field and issuance
 * @throws {TypeError} when the pepper is not 32 bytes
 */
export function commitmentOf(given: { data: string; pepper: Hex32 }): Hex32 {
  const pepper = bytesOfSize(given.pepper, 32);
  commitmentWords.set(keccak256(bytesOfText(given.data)));
  commitmentWords.set(pepper, 32);
  return hexOfBytes(keccak256(commitmentWords));
}

const leafWords = new Uint8Array(5 * 32);
leafWords.set(typeHash);
const commitmentWords = new Uint8Array(2 * 32);

/** Holds only hashes of catalogue names, so that callers cannot make it grow. */
const fieldHashes = new Map<string, Uint8Array>();

function hashOfField(field: string): Uint8Array {
  const known = fieldHashes.get(field);
  if (known !== undefined) return known;
  const hash = keccak256(bytesOfText(field));
  if (isFieldName(field)) fieldHashes.set(field, hash);
  return hash;
}

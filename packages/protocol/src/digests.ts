// Digests of our own types, for hot paths: domain separator and type hashes are computed once, and the
// words of a struct are written into one buffer that every call reuses (nothing here is asynchronous).
// `hashTypedData` with `svcTypes` gives the same digests.
import { keccak256 } from "./keccak.ts";

import type { Address } from "./address.ts";
import { bytesOfText, canonicalJson, hexOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { svcDomain, svcTypes } from "./svc-types.ts";
import { domainSeparator, typeHash } from "./typed-data.ts";
import { bytesOfSize, writeInteger, writeWord } from "./words.ts";

/** `object` of a signature for which there is no request object (decisions, section 3). */
export const zeroHash: Hex32 = `0x${"00".repeat(32)}`;

/** The members of `Login`. */
export interface LoginMessage {
  session: string;
  /** `conn` after one decoding. */
  connection: string;
  /** The verified domain, or empty. */
  requester: string;
  /** The two digits, or empty. */
  code: string;
  /** `requestObjectHash` of the request object, or `zeroHash`. */
  object: Hex32;
}

/** The members of `Access`. */
export interface AccessMessage {
  /** The session or id; empty if the link has none. */
  request: string;
  connection: string;
  requester: string;
  object: Hex32;
  /** `fieldsHash` of the released names. */
  fields: Hex32;
  /** Unix seconds. */
  deadline: number;
}

/** The members of `Share`. */
export interface ShareMessage extends AccessMessage {
  /** `leavesHash` of the leaves of the released fields, in the order of their names. */
  data: Hex32;
}

/** The members of `Transfer`. */
export interface TransferMessage {
  /** The holder. */
  from: Address;
  data: Hex32;
  /** Unix seconds. */
  expiresAt: number;
  /** `aud` of the link, or empty. */
  audience: string;
  /** `nonce` of the link, or empty. */
  nonce: string;
}

/** The members of `Decline`. */
export interface DeclineMessage {
  request: string;
  connection: string;
}

/** The members of `Session`, which opens the wallet's own session with its broker. */
export interface SessionMessage {
  origin: string;
  challenge: string;
  /** Unix seconds. */
  deadline: number;
}

/** The digest of a `Login`, 32 fresh bytes. @throws {TypeError} when a hash is not one */
export function loginDigest(message: LoginMessage): Uint8Array {
  begin(typeHashes.Login);
  putText(message.session);
  putText(message.connection);
  putText(message.requester);
  putText(message.code);
  putHash(message.object);
  return finish();
}

/** The digest of a `Share`, 32 fresh bytes. @throws {TypeError} when a hash or time is not one */
export function shareDigest(message: ShareMessage): Uint8Array {
  begin(typeHashes.Share);
  putText(message.request);
  putText(message.connection);
  putText(message.requester);
  putHash(message.object);
  putHash(message.fields);
  putHash(message.data);
  putSeconds(message.deadline);
  return finish();
}

/** The digest of an `Access`, 32 fresh bytes. @throws {TypeError} when a hash or time is not one */
export function accessDigest(message: AccessMessage): Uint8Array {
  begin(typeHashes.Access);
  putText(message.request);
  putText(message.connection);
  putText(message.requester);
  putHash(message.object);
  putHash(message.fields);
  putSeconds(message.deadline);
  return finish();
}

/** The digest of a `Transfer`, 32 fresh bytes. @throws {TypeError} when an address, hash or time is not one */
export function transferDigest(message: TransferMessage): Uint8Array {
  begin(typeHashes.Transfer);
  putBytes(message.from, 20);
  putHash(message.data);
  putSeconds(message.expiresAt);
  putText(message.audience);
  putText(message.nonce);
  return finish();
}

/** The digest of a `Decline`, 32 fresh bytes. */
export function declineDigest(message: DeclineMessage): Uint8Array {
  begin(typeHashes.Decline);
  putText(message.request);
  putText(message.connection);
  return finish();
}

/** The digest of a `Session`, 32 fresh bytes. @throws {TypeError} when the time is not one */
export function sessionDigest(message: SessionMessage): Uint8Array {
  begin(typeHashes.Session);
  putText(message.origin);
  putText(message.challenge);
  putSeconds(message.deadline);
  return finish();
}

/** `fields` of `Share` and `Access`: keccak256 of the canonical JSON array of the names, sorted. */
export function fieldsHash(names: readonly string[]): Hex32 {
  return hexOfBytes(keccak256(bytesOfText(canonicalJson(names.toSorted()))));
}

/**
 * `data` of `Share` and `Transfer`: keccak256 of `abi.encode(bytes32[])`.
 *
 * @param leaves in the order of their field names, sorted
 * @throws {TypeError} when a leaf is not 32 bytes
 */
export function leavesHash(leaves: readonly Hex32[]): Hex32 {
  const words = new Uint8Array(64 + leaves.length * 32);
  words[31] = 32;
  writeInteger(words, 32, leaves.length);
  for (const [index, leaf] of leaves.entries()) words.set(bytes32(leaf), 64 + index * 32);
  return hexOfBytes(keccak256(words));
}

const typeHashOf = (name: keyof typeof svcTypes): Uint8Array => bytes32(typeHash(svcTypes, name));
const typeHashes = {
  Login: typeHashOf("Login"),
  Share: typeHashOf("Share"),
  Access: typeHashOf("Access"),
  Transfer: typeHashOf("Transfer"),
  Decline: typeHashOf("Decline"),
  Session: typeHashOf("Session"),
};
const emptyTextHash = keccak256(new Uint8Array(0));

/** The type hash and at most seven words. */
const struct = new Uint8Array(8 * 32);
let length = 0;
/** 0x19 0x01, the domain separator, the struct's hash. */
const envelope = new Uint8Array(2 + 32 + 32);
envelope.set([0x19, 0x01]);
envelope.set(bytes32(domainSeparator(svcDomain)), 2);

function begin(hash: Uint8Array): void {
  struct.set(hash);
  length = 32;
}

function putText(text: string): void {
  struct.set(text === "" ? emptyTextHash : keccak256(bytesOfText(text)), length);
  length += 32;
}

function putHash(hash: Hex32): void {
  putBytes(hash, 32);
}

/** Bytes of the exact size, at the end of their word. */
function putBytes(hex: string, size: number): void {
  writeWord(struct, length, bytesOfSize(hex, size));
  length += 32;
}

function putSeconds(seconds: number): void {
  writeInteger(struct, length, seconds);
  length += 32;
}

function finish(): Uint8Array {
  envelope.set(keccak256(struct.subarray(0, length)), 34);
  return keccak256(envelope);
}

function bytes32(hash: Hex32): Uint8Array {
  return bytesOfSize(hash, 32);
}

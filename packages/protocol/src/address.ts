import { keccak256 } from "./keccak.ts";

import { bytesOfText, canonicalJson, hexOfBytes } from "./encoding.ts";

/** 20 bytes as `0x` and 40 lower-case hex digits: the canonical spelling of every identity (decisions, section 1). */
export type Address = `0x${string}`;

const subjectPrefix = "svcid:";

/**
 * Reads an identity or contract address: with or without `0x`, in any case. Text that mixes upper and
 * lower case must carry a valid EIP-55 checksum. Null for anything else.
 */
export function parseAddress(text: string): Address | null {
  const match = /^(?:0[xX])?([0-9a-fA-F]{40})$/.exec(text);
  const digits = match?.[1];
  if (digits === undefined) return null;
  const lower = digits.toLowerCase();
  const address: Address = `0x${lower}`;
  const isMixed = digits !== lower && digits !== digits.toUpperCase();
  if (isMixed && checksumAddress(address) !== `0x${digits}`) return null;
  return address;
}

/** The EIP-55 spelling, for people and for wallets that require it. Never stored and never compared. */
export function checksumAddress(address: Address): string {
  const digits = address.slice(2);
  const hash = hexOfBytes(keccak256(bytesOfText(digits))).slice(2);
  let text = "0x";
  for (let at = 0; at < digits.length; at += 1) {
    const digit = digits[at] ?? "";
    text += (hash[at] ?? "0") >= "8" ? digit.toUpperCase() : digit;
  }
  return text;
}

/** The short form people compare by eye, on the QR page and in the wallet: `0x1234…abcd`. Proves nothing. */
export function shortAddress(address: Address): string {
  return `${address.slice(0, 6)}…${address.slice(-4)}`;
}

/**
 * The identity of an organization, `from` in links: the last 20 bytes of keccak256 of the canonical JSON
 * `["svc-organization-v1", <uuid>]` (decisions, section 1). No key exists for it.
 *
 * @throws {TypeError} when the text is not a UUID; its case does not matter
 */
export function organizationIdentity(uuid: string): Address {
  return addressOfUuid("svc-organization-v1", uuid);
}

/**
 * How the registry on chain names an issuer that has no address of its own: the last 20 bytes of keccak256 of the
 * canonical JSON `["svc-issuer-v1", <uuid>]` (decisions, section 4). The UUID is random, so the name differs in every
 * installation; no key exists for it.
 *
 * @throws {TypeError} when the text is not a UUID; its case does not matter
 */
export function issuerIdentity(uuid: string): Address {
  return addressOfUuid("svc-issuer-v1", uuid);
}

function addressOfUuid(kind: string, uuid: string): Address {
  const lower = uuid.toLowerCase();
  if (!/^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(lower)) {
    throw new TypeError("organizations and issuers are named by their UUID");
  }
  return addressOfHash(keccak256(bytesOfText(canonicalJson([kind, lower]))));
}

/**
 * The address of a secp256k1 public key: the last 20 bytes of keccak256 of its coordinates.
 *
 * @param publicKey uncompressed, 65 bytes that begin with 4
 * @throws {TypeError} for a key of another form
 */
export function addressOfPublicKey(publicKey: Uint8Array): Address {
  if (publicKey.length !== 65 || publicKey[0] !== 4) {
    throw new TypeError("a public key is 65 bytes, uncompressed");
  }
  return addressOfHash(keccak256(publicKey.subarray(1)));
}

/** The `sub` of a user's tokens: `svcid:` and the address (service document, "Token response"). */
export function subjectOf(address: Address): string {
  return subjectPrefix + address;
}

/** The address in a `sub`; null unless it is exactly what `subjectOf` writes. */
export function addressOfSubject(subject: string): Address | null {
  if (!subject.startsWith(subjectPrefix)) return null;
  const text = subject.slice(subjectPrefix.length);
  const address = parseAddress(text);
  return address === text ? address : null;
}

function addressOfHash(hash: Uint8Array): Address {
  return hexOfBytes(hash.subarray(12));
}

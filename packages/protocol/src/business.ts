// How a business decides (decisions, section 6): its charter as the contract packs it, and what members approve.
import { keccak256 } from "./keccak.ts";

import type { Address } from "./address.ts";
import { parseAddress } from "./address.ts";
import { fieldsHash } from "./digests.ts";
import { bytesOfHex, bytesOfText, hexOfBytes } from "./encoding.ts";
import type { Hex, Hex32 } from "./encoding.ts";
import { businessTypes } from "./svc-types.ts";
import { structHash, typedDataDigest } from "./typed-data.ts";
import { bytesOfSize, writeInteger, writeWord } from "./words.ts";

/** More than half of the voting members, or all of them. */
export type BusinessRule = "MAJORITY" | "UNANIMOUS";
/** What rules are set for. */
export type RuleName = "signature_requests" | "data_requests" | "governance";

/** One member of a business. */
export interface CharterMember {
  readonly address: Address;
  readonly isVoting: boolean;
}

/** Who decides for a business, and how. */
export interface Charter {
  readonly rules: Readonly<Record<RuleName, BusinessRule>>;
  /** In any order, each member once. */
  readonly members: readonly CharterMember[];
}

/** What an approval is for, as the contract numbers it; an approval for one category is useless for any other. */
export const businessCategory = { signature: 1, data: 2, governance: 3, login: 4 } as const;
export type BusinessCategory = (typeof businessCategory)[keyof typeof businessCategory];

const ruleNames = ["signature_requests", "data_requests", "governance"] as const;
const rulesLength = 3;
const memberLength = 21;
/** The most members that the contract takes. */
export const charterMembersMax = 100;

/**
 * The charter as the contract keeps it, members in the order of their addresses.
 *
 * @throws {TypeError} for a malformed address
 */
export function encodeCharter({ rules, members }: Charter): Hex {
  const sorted = members.toSorted((one, other) => (one.address < other.address ? -1 : 1));
  const bytes = new Uint8Array(rulesLength + sorted.length * memberLength);
  for (const [at, name] of ruleNames.entries()) bytes[at] = rules[name] === "UNANIMOUS" ? 1 : 0;
  for (const [index, { address, isVoting }] of sorted.entries()) {
    const at = rulesLength + index * memberLength;
    bytes[at] = isVoting ? 1 : 0;
    bytes.set(bytesOfSize(address, 20), at + 1);
  }
  return hexOfBytes(bytes);
}

/** Reads a charter from the contract's bytes; null if the contract would refuse them. */
export function decodeCharter(charter: Hex): Charter | null {
  const bytes = bytesOfHex(charter);
  if (bytes === null) return null;
  const count = (bytes.length - rulesLength) / memberLength;
  if (!Number.isInteger(count) || count < 1 || count > charterMembersMax) return null;
  const rules = Array.from(bytes.subarray(0, rulesLength), ruleOfByte);
  const [signatures, data, governance] = rules;
  if (!signatures || !data || !governance) return null;
  const members: CharterMember[] = [];
  for (let at = rulesLength; at < bytes.length; at += memberLength) {
    const address = parseAddress(hexOfBytes(bytes.subarray(at + 1, at + memberLength)));
    const flags = bytes[at] ?? 0;
    if (address === null || flags > 1 || !hasKey(address)) return null;
    if (address <= (members.at(-1)?.address ?? "")) return null;
    members.push({ address, isVoting: flags === 1 });
  }
  if (!members.some(({ isVoting }) => isVoting)) return null;
  return {
    rules: { signature_requests: signatures, data_requests: data, governance },
    members,
  };
}

/** Whether a key can exist for an address: not for zero and the addresses of precompiles. */
export function hasKey(address: Address): boolean {
  return BigInt(address) > 0xffffn;
}

/** How many of this many voting members have to approve. */
export function thresholdOf(rule: BusinessRule, voters: number): number {
  return rule === "UNANIMOUS" ? voters : Math.floor(voters / 2) + 1;
}

/**
 * The rule of governance if none is named: of one or two voting members all must agree.
 *
 * @param voters voting members
 */
export function defaultGovernanceRule(voters: number): BusinessRule {
  return voters <= 2 ? "UNANIMOUS" : "MAJORITY";
}

/** The rule that a category follows; a login follows that of signatures. */
export function ruleOfCategory(category: BusinessCategory): RuleName {
  if (category === businessCategory.data) return "data_requests";
  return category === businessCategory.governance ? "governance" : "signature_requests";
}

/** What members approve when a business releases fields. */
export interface ReleaseMessage {
  readonly requestId: string;
  /** The client domain's UUID. */
  readonly audience: string;
  readonly business: Address;
  /** Names, in any order. */
  readonly required: readonly string[];
  /** The optional names that are released. */
  readonly optional: readonly string[];
  readonly purpose: string;
  /** Unix seconds. */
  readonly deadline: number;
}

/** `hash` of an approval of category 2. */
export function releaseHash(message: ReleaseMessage): Hex32 {
  return structHash(businessTypes, "Release", {
    ...message,
    required: fieldsHash(message.required),
    optional: fieldsHash(message.optional),
    purpose: hexOfBytes(keccak256(bytesOfText(message.purpose))),
  });
}

/** An act of governance: the signature of the contract's function and its arguments. */
export interface GovernanceAct {
  /** Such as `moveTo(address)`. */
  readonly operation: string;
  /** As `abi.encode` writes them; {@link governanceActs} does. */
  readonly arguments: Hex;
}

/** The contract's functions that members decide on, by name. */
export const governanceFunctions = {
  changeCharter: "changeCharter(bytes)",
  moveTo: "moveTo(address)",
  startRemoval: "startRemoval(address)",
  withdraw: "withdraw(bytes32)",
} as const;

/** The acts that members decide on. @throws {TypeError} when an argument does not have its size */
export const governanceActs = {
  changeCharter: (charter: Hex): GovernanceAct => ({
    operation: governanceFunctions.changeCharter,
    arguments: encodedBytes(charter),
  }),
  moveTo: (successor: Address): GovernanceAct => ({
    operation: governanceFunctions.moveTo,
    arguments: encodedAddress(successor),
  }),
  startRemoval: (member: Address): GovernanceAct => ({
    operation: governanceFunctions.startRemoval,
    arguments: encodedAddress(member),
  }),
  withdraw: (hash: Hex32): GovernanceAct => ({
    operation: governanceFunctions.withdraw,
    arguments: hexOfBytes(bytesOfSize(hash, 32)),
  }),
} as const;

/** `hash` of an approval of category 3. @param act.nonce the one that the wallet names for the next act */
export function governanceHash(act: GovernanceAct & { readonly nonce: number }): Hex32 {
  return structHash(businessTypes, "Governance", {
    operation: hexOfBytes(keccak256(bytesOfText(act.operation))),
    arguments: hexOfBytes(keccak256(bytesOfHex(act.arguments) ?? new Uint8Array(0))),
    nonce: act.nonce,
  });
}

/** What members approve when one of them logs in for the business. */
export interface BusinessLoginMessage {
  /** The login's id. */
  readonly session: string;
  readonly issuer: string;
  readonly clientId: string;
  /** The verified domain, or empty. */
  readonly requester: string;
  /** As the client asked for it. */
  readonly scope: string;
  readonly business: Address;
  readonly actingMember: Address;
}

/** `hash` of an approval of category 4. */
export function businessLoginHash(message: BusinessLoginMessage): Hex32 {
  return structHash(businessTypes, "BusinessLogin", { ...message });
}

/** What a member signs. */
export interface Approval {
  readonly chainId: number;
  readonly business: Address;
  readonly category: BusinessCategory;
  readonly hash: Hex32;
  readonly epoch: number;
  /** Unix seconds. */
  readonly validUntil: number;
}

/** The EIP-712 digest of an approval, in the wallet's own domain. */
export function approvalDigest(approval: Approval): Uint8Array {
  const { chainId, business, category, hash, epoch, validUntil } = approval;
  return typedDataDigest({
    domain: { chainId, verifyingContract: business },
    types: { BusinessApproval: businessTypes.BusinessApproval },
    primaryType: "BusinessApproval",
    message: { category, hash, epoch, validUntil },
  });
}

/** What a future member signs: roster and rules of the wallet that the factory will make. */
export interface Invitation {
  readonly chainId: number;
  readonly factory: Address;
  readonly salt: Hex32;
  readonly charter: Hex;
  /** Unix seconds. */
  readonly deadline: number;
}

/** The EIP-712 digest of an `Invitation`, in the factory's domain; `roster` and `rules` are hashes of their parts of the charter. */
export function invitationDigest(invitation: Invitation): Uint8Array {
  const { chainId, factory, salt, deadline } = invitation;
  const bytes = bytesOfHex(invitation.charter) ?? new Uint8Array(0);
  return typedDataDigest({
    domain: { chainId, verifyingContract: factory },
    types: { Invitation: businessTypes.Invitation },
    primaryType: "Invitation",
    message: {
      factory,
      salt,
      roster: hexOfBytes(keccak256(bytes.subarray(rulesLength))),
      rules: hexOfBytes(keccak256(bytes.subarray(0, rulesLength))),
      deadline,
    },
  });
}

/**
 * The EIP-712 digest by which a member ends its removal or a move.
 *
 * @param keep.nonce `keepNonce` of the wallet's `removal()`
 */
export function keepDigest(keep: {
  readonly chainId: number;
  readonly business: Address;
  readonly nonce: number;
}): Uint8Array {
  return typedDataDigest({
    domain: { chainId: keep.chainId, verifyingContract: keep.business },
    types: { Keep: businessTypes.Keep },
    primaryType: "Keep",
    message: { nonce: keep.nonce },
  });
}

function ruleOfByte(byte: number): BusinessRule | null {
  if (byte === 0) return "MAJORITY";
  return byte === 1 ? "UNANIMOUS" : null;
}

function encodedAddress(address: Address): Hex {
  const word = new Uint8Array(32);
  writeWord(word, 0, bytesOfSize(address, 20));
  return hexOfBytes(word);
}

function encodedBytes(hex: Hex): Hex {
  const bytes = bytesOfHex(hex);
  if (bytes === null) throw new TypeError("the bytes are not hex");
  const words = new Uint8Array(64 + Math.ceil(bytes.length / 32) * 32);
  words[31] = 32;
  writeInteger(words, 32, bytes.length);
  words.set(bytes, 64);
  return hexOfBytes(words);
}

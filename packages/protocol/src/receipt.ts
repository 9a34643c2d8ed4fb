// The receipt of a settled order (decisions, section 5): everything that shows, without the service, that a
// person consented and that the operator committed to it on chain. It holds no value of a field.
import type { Address } from "./address.ts";
import type { FieldName } from "./attributes.ts";
import { shareDigest, fieldsHash, leavesHash } from "./digests.ts";
import type { ShareMessage } from "./digests.ts";
import { hexOfBytes, isRecord } from "./encoding.ts";
import type { Hex, Hex32 } from "./encoding.ts";
import { leafOf } from "./leaves.ts";
import { verifyMerkleProof } from "./merkle.ts";
import { orderIdOf, orderLeafOf, orderPhase } from "./order.ts";
import { requestObjectHash } from "./request-object.ts";
import { fieldMember, siblingsMember } from "./results/proofs.ts";
import {
  orFault,
  ResultRefused,
  addressMember,
  countMember,
  hashMember,
  optionalMember,
  secondsMember,
  signatureMember,
  textMember,
  within,
} from "./results/members.ts";
import type { Members, ResultFault } from "./results/members.ts";

/** A released field: its leaf without the value, and where an issuer attested it. */
export interface ReceiptField {
  field: FieldName;
  commitment: Hex32;
  /** Unix seconds; part of the leaf. */
  expiresAt: number;
  /** How the registry names the issuer. */
  issuer: Address;
  /** That the issuer attested. */
  root: Hex32;
  /** The siblings from the leaf to that root. */
  proof: readonly Hex32[];
}

/** One phase of the settlement, as the chain holds it. */
export interface ReceiptPhase {
  /** The account that committed; the event names it. */
  operator: Address;
  transactionHash: Hex32;
  blockNumber: number;
  /** Of the block, Unix seconds. */
  blockTime: number;
  /** Of the batch. */
  root: Hex32;
  /** The siblings from the order's leaf to that root. */
  proof: readonly Hex32[];
}

export interface Receipt {
  /** 64 hex digits, without `0x`. */
  referenceKey: string;
  /** From 1. */
  attempt: number;
  /** Of this attempt; 32 random bytes, part of the order's id. */
  salt: Hex32;
  user: Address;
  livemode: boolean;
  /** What the user was shown: the compact form, as the wallet received it. */
  requestObject: string;
  /** What the user signed. */
  share: ShareMessage;
  signature: Hex;
  /** In the order of their names, sorted. */
  fields: readonly ReceiptField[];
  chainId: number;
  registry: Address;
  settlement: Address;
  initiate: ReceiptPhase;
  confirm?: ReceiptPhase;
}

/** What a receipt says that only a chain, a signature or the caller's own knowledge can confirm. */
export interface CheckedReceipt {
  /** The digest that `user` must have signed with `signature`. */
  consent: Uint8Array;
  /** The leaves of the released fields, in their order. */
  leaves: readonly Hex32[];
}

/** Reads a receipt as it came from outside. Unknown members are ignored. Never throws. */
export function parseReceipt(value: unknown): Receipt | { fault: ResultFault } {
  return orFault(() => {
    if (!isRecord(value)) throw new ResultRefused(null, "is not an object");
    return readReceipt(value);
  });
}

/**
 * Checks that the parts of a receipt belong together: the signed `Share` names this order, this request object and
 * exactly these leaves; each leaf leads to its issuer's root, and the order's leaf to the roots of its batches.
 *
 * That alone proves nothing. The caller still has to check the signature over `consent` by `user`, the signature of the
 * request object, and, with anchors of its own, what the chain says of every root. Never throws.
 */
export function checkReceipt(receipt: Receipt): CheckedReceipt | { refused: string } {
  const { share, fields } = receipt;
  const names = fields.map(({ field }) => field);
  const leaves = fields.map((each) => leafOf({ ...each, user: receipt.user }));
  const isInOrder = names.every((name, index) => index === 0 || (names[index - 1] ?? "") < name);
  const consent = shareDigest(share);
  const checks: [boolean, string][] = [
    [share.request === receipt.referenceKey, "the consent is for another order"],
    [requestObjectHash(receipt.requestObject) === share.object, "the request object is another"],
    [names.length > 0 && isInOrder, "the fields are not in order"],
    [fieldsHash(names) === share.fields, "the consent is for other fields"],
    [leavesHash(leaves) === share.data, "the consent is for other leaves"],
    [
      fields.every((each, index) => verifyMerkleProof({ ...each, leaf: leaves[index] ?? "0x" })),
      "a leaf is not under its issuer's root",
    ],
    [isUnder(receipt, consent, "initiate"), "the order is not under the initiate root"],
    [
      receipt.confirm === undefined || isUnder(receipt, consent, "confirm"),
      "the order is not under the confirm root",
    ],
  ];
  const failed = checks.find(([holds]) => !holds);
  return failed === undefined ? { consent, leaves } : { refused: failed[1] };
}

function isUnder(receipt: Receipt, consent: Uint8Array, phase: keyof typeof orderPhase): boolean {
  const settled = receipt[phase];
  if (settled === undefined) return false;
  const leaf = orderLeafOf({
    phase: orderPhase[phase],
    order: orderIdOf(receipt),
    consent: hexOfBytes(consent),
    data: receipt.share.data,
  });
  return verifyMerkleProof({ ...settled, leaf });
}

/** More than the fields of one order. */
const fieldsMax = 200;
const requestObjectLengthMax = 65_536;
const attemptMax = 0xffff_ffff;

function readReceipt(members: Members): Receipt {
  const confirm = optionalMember(members, "confirm");
  const livemode = optionalMember(members, "livemode");
  if (typeof livemode !== "boolean") throw new ResultRefused("livemode", "is not a boolean");
  const attempt = countMember(members, "attempt");
  if (attempt < 1 || attempt > attemptMax) throw new ResultRefused("attempt", "is out of range");
  return {
    referenceKey: referenceKeyMember(members),
    attempt,
    salt: hashMember(members, "salt"),
    user: addressMember(members, "user"),
    livemode,
    requestObject: textMember(members, "requestObject", requestObjectLengthMax),
    share: recordMember(members, "share", readShare),
    signature: signatureMember(members, "signature"),
    fields: readFields(optionalMember(members, "fields")),
    chainId: countMember(members, "chainId"),
    registry: addressMember(members, "registry"),
    settlement: addressMember(members, "settlement"),
    initiate: recordMember(members, "initiate", readPhase),
    ...(confirm === undefined ? {} : { confirm: recordMember(members, "confirm", readPhase) }),
  };
}

function referenceKeyMember(members: Members): string {
  const text = textMember(members, "referenceKey");
  if (!/^[0-9a-f]{64}$/.test(text)) {
    throw new ResultRefused("referenceKey", "is not 64 lower-case hex digits");
  }
  return text;
}

function recordMember<T>(members: Members, name: string, read: (inner: Members) => T): T {
  const value = optionalMember(members, name);
  if (!isRecord(value)) throw new ResultRefused(name, "is not an object");
  return within(name, () => read(value));
}

function readShare(members: Members): ShareMessage {
  const requester = optionalMember(members, "requester");
  return {
    request: textMember(members, "request"),
    connection: textMember(members, "connection"),
    requester: requester === "" ? "" : textMember(members, "requester"),
    object: hashMember(members, "object"),
    fields: hashMember(members, "fields"),
    data: hashMember(members, "data"),
    deadline: secondsMember(members, "deadline"),
  };
}

function readFields(value: unknown): readonly ReceiptField[] {
  if (!Array.isArray(value) || value.length > fieldsMax) {
    throw new ResultRefused("fields", `is not a list of at most ${fieldsMax} entries`);
  }
  return value.map((entry: unknown, index) =>
    within(`fields[${index}]`, () => {
      if (!isRecord(entry)) throw new ResultRefused(null, "is not an object");
      return {
        field: fieldMember(entry, "field"),
        commitment: hashMember(entry, "commitment"),
        expiresAt: secondsMember(entry, "expiresAt"),
        issuer: addressMember(entry, "issuer"),
        root: hashMember(entry, "root"),
        proof: siblingsMember(entry, "proof"),
      };
    }),
  );
}

function readPhase(members: Members): ReceiptPhase {
  return {
    operator: addressMember(members, "operator"),
    transactionHash: hashMember(members, "transactionHash"),
    blockNumber: countMember(members, "blockNumber"),
    blockTime: secondsMember(members, "blockTime"),
    root: hashMember(members, "root"),
    proof: siblingsMember(members, "proof"),
  };
}

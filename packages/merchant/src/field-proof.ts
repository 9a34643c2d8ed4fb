import { isRecord, type Address, type Hex32 } from "@svc/protocol";

import { openMembers, type Members } from "./members.ts";
import { MerchantError } from "./merchant-error.ts";

/**
 * What anybody needs to check one delivered field on chain, in addition to whose field it is, its value and its pepper:
 * an entry of `proofs` in the answer of GET /api/v1/blockchain/proof. It proves nothing until `verifyProof` has
 * accepted it.
 */
export interface FieldProof {
  /** A concrete name of the catalogue. */
  field: string;
  /** The commitment to the value: `keccak256(abi.encode(keccak256(data), pepper))`. */
  commitment: Hex32;
  /** Unix seconds; part of the leaf. */
  expiresAt: number;
  /** The hash of user, field, commitment and expiry; `verifyProof` recomputes it. */
  leaf: Hex32;
  /** The root of the document's tree, as its issuer attested it. */
  root: Hex32;
  /** The siblings from leaf to root. */
  proof: readonly Hex32[];
  /** How the registry names the issuer. */
  issuer: Address;
  /** The transaction in which the root was attested. */
  transactionHash: Hex32;
  chainId: number;
  /** Address of `CredentialRegistry`. */
  registry: Address;
}

/** A tree of 2^64 leaves. */
const siblingsMax = 64;

/** Opens a proof from outside. @throws {MerchantError} proof_refused, here and when a malformed member is read */
export function openProof(value: unknown): Members {
  if (!isRecord(value)) throw refused("proof");
  return openMembers(value, refused);
}

/** The error for a proof that fails a check. @param reason names the member */
export function refused(reason: string): MerchantError {
  return new MerchantError("proof_refused", { reason });
}

/** Reads a proof as it came from outside; unknown members are ignored. */
export function readFieldProof(members: Members): FieldProof {
  return { field: members.text("field"), ...readPlace(members) };
}

/** The members of a proof that do not say which field it is of. */
export function readPlace(members: Members): Omit<FieldProof, "field"> {
  return {
    commitment: members.hash("commitment"),
    expiresAt: members.count("expiresAt"),
    leaf: members.hash("leaf"),
    root: members.hash("root"),
    proof: members.hashes("proof", siblingsMax),
    issuer: members.address("issuer"),
    transactionHash: members.hash("transactionHash"),
    chainId: members.count("chainId"),
    registry: members.address("registry"),
  };
}

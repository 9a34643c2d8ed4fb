import type { Address, Hex32 } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import type { KybAnnouncement } from "../event/events.ts";

export type SignatureStatus =
  | "pending_approval"
  | "signed"
  | "refused"
  | "expired"
  | "cancelled"
  | "failed";

/** Why a request ended unsigned (decisions section 6, States). */
export type SignatureReason =
  | "declined"
  | "expired"
  | "business_not_verified"
  | "business_wallet_rotated"
  | "unavailable";

/** What a merchant asks a business to sign, without the document itself. */
export interface SignatureRequest {
  readonly id: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly environment: Environment;
  readonly business: Address;
  readonly messageKind: "TEXT" | "TYPED_DATA";
  readonly digest: Hex32;
  readonly purpose: string;
  readonly status: SignatureStatus;
  readonly reason: SignatureReason | null;
  /** The sequence of its last event. */
  readonly sequence: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** How often its recording was sent to the chain. */
  readonly recordings: number;
  readonly transactionHash: Hex32 | null;
  readonly signedAt: number | null;
}

/** A request whose signature is recorded on chain. */
export interface SignedRequest extends SignatureRequest {
  readonly transactionHash: Hex32;
  readonly signedAt: number;
}

export function isSigned(request: SignatureRequest): request is SignedRequest {
  return request.signedAt !== null && request.transactionHash !== null;
}

const windowSeconds = { min: 300, max: 86_400 };

/** How long members may vote, in seconds: as requested, within bounds (service document, Limits). */
export function clampWindow(asked: number | null): number {
  return Math.min(Math.max(asked ?? windowSeconds.max, windowSeconds.min), windowSeconds.max);
}

/** A request as the merchant sees it, which says neither who voted nor how many. */
export function recordOf(request: SignatureRequest) {
  return {
    requestId: request.id,
    businessWalletAddress: request.business,
    messageKind: request.messageKind,
    digest: request.digest,
    purpose: request.purpose,
    status: request.status,
    ...(request.reason === null ? {} : { reason: request.reason }),
    createdAt: request.createdAt,
    expiresAt: request.expiresAt,
  };
}

/** The signature for any ERC-1271 verifier: it consists of the digest, and names no member. */
export function signatureOf(request: SignedRequest, chainId: number) {
  return {
    requestId: request.id,
    businessWalletAddress: request.business,
    signature: `0x01${request.digest.slice(2)}`,
    digest: request.digest,
    signedAt: request.signedAt,
    transactionHash: request.transactionHash,
    verification: {
      method: "eip1271" as const,
      contract: request.business,
      chainId,
      selector: "0x1626ba7e" as const,
    },
  };
}

/** The event for the present state of the request. */
export function announcementOf(request: SignatureRequest, chainId: number): KybAnnouncement {
  const { id, clientDomainId, environment, sequence, status } = request;
  return {
    clientDomainId,
    environment,
    streamId: id,
    sequence,
    event: `kyb.signature_request.${status}`,
    data: {
      request_id: id,
      business_wallet_address: request.business,
      message_kind: request.messageKind,
      digest: request.digest,
      status,
      ...(request.reason === null ? {} : { reason: request.reason }),
      expires_at: request.expiresAt,
      ...(isSigned(request) ? signedData(request, chainId) : {}),
    },
  };
}

function signedData(request: SignedRequest, chainId: number) {
  const { signature, signedAt, transactionHash, verification } = signatureOf(request, chainId);
  return {
    signature,
    signed_at: signedAt,
    transaction_hash: transactionHash,
    verification: {
      method: verification.method,
      contract: verification.contract,
      chain_id: verification.chainId,
      selector: verification.selector,
    },
  };
}

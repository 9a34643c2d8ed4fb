import { type Address, type Charter, decodeCharter, type Hex, hexOfBytes } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";

export const businessStatuses = [
  /** Not everybody on the roster has signed the invitation. */
  "inviting",
  /** All have signed; the transaction is on its way. */
  "deploying",
  /** Its wallet is on chain. */
  "active",
  /** Stopped by the operator. */
  "suspended",
  /** It continues in another wallet. */
  "moved",
  /** Its founding was refused or abandoned, expired, or failed. */
  "lapsed",
] as const;
export type BusinessStatus = (typeof businessStatuses)[number];

/** A company with a wallet contract. */
export interface Business {
  readonly address: Address;
  readonly environment: Environment;
  /** What its founders call it. */
  readonly name: string;
  readonly status: BusinessStatus;
  readonly creator: Address;
  readonly charter: Charter;
  /** Counts the changes of the charter, as the contract does. */
  readonly epoch: number;
  /** Counts the acts of governance, as the contract does. */
  readonly nonce: number;
  /** Since when somebody has vouched for its record, Unix seconds; null if nobody does. */
  readonly verifiedAt: number | null;
  /** When its wallet was deployed. */
  readonly registeredAt: number | null;
  readonly successor: Address | null;
}

/** A member with its name. */
export interface BusinessMember {
  readonly address: Address;
  readonly name: string;
  readonly isVoting: boolean;
  readonly isCreator: boolean;
}

/** Reads a charter in the contract's form. @throws for bytes that the contract would not accept */
export function charterOfBytes(bytes: Uint8Array): Charter {
  const hex: Hex = hexOfBytes(bytes);
  const charter = decodeCharter(hex);
  if (charter === null) throw new Error("a business has a charter that the contract would refuse");
  return charter;
}

/** Whether a business may move to `next`: another active business of the same environment. */
export function mayGoOnIn(next: Business | null, business: Business): next is Business {
  const { address, environment } = business;
  return next?.status === "active" && next.environment === environment && next.address !== address;
}

/**
 * Whether the business may release and sign, which merchants see as `verified`: deployed, vouched for, neither
 * suspended nor moved.
 */
export function isGoodStanding({ status, verifiedAt }: Business): boolean {
  return status === "active" && verifiedAt !== null;
}

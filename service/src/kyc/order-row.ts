import type { Address, Hex32 } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import type { AskedName } from "../credentials/index.ts";
import type { FailureReason, Status } from "./order.ts";

/** An order as it is kept. */
export interface Order {
  readonly id: string;
  readonly referenceKey: string;
  readonly packageId: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly environment: Environment;
  readonly user: Address;
  /** As asked, sorted, parents among them. */
  readonly required: readonly AskedName[];
  readonly optional: readonly AskedName[];
  readonly attempt: number;
  readonly status: Status;
  /** When it reached that status, Unix seconds. */
  readonly statusAt: number;
  /** When a wallet first opened this attempt; null before. */
  readonly scannedAt: number | null;
  readonly failureReason: FailureReason | null;
  /** Sequence number of the order's newest event. */
  readonly sequence: number;
  readonly callback: string;
  readonly expiration: number;
  readonly reference: string | null;
  readonly purpose: string | null;
  readonly returnUrl: string | null;
  readonly createdAt: number;
  readonly mismatches: number;
  readonly salt: Hex32;
  readonly initiatedTxHash: Hex32 | null;
  readonly confirmTxHash: Hex32 | null;
}

/** A status that an order reached, and what belongs to it. */
export type ReachedStatus = Pick<
  Order,
  "status" | "statusAt" | "initiatedTxHash" | "confirmTxHash" | "failureReason"
>;

import { type Address, type Hex32, hexOfBytes } from "@svc/protocol";
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
  /** Of its newest event. */
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

/** The row behind an {@link Order}. */
export interface OrderColumns {
  id: string;
  reference_key: Buffer;
  package_id: string;
  client_domain_id: string;
  organization_id: string;
  environment: Environment;
  user_address: Address;
  required: AskedName[];
  optional: AskedName[];
  attempt: number;
  status: Status;
  status_at: number;
  scanned_at: number | null;
  failure_reason: FailureReason | null;
  sequence: number;
  callback: string;
  expiration: number;
  reference: string | null;
  purpose: string | null;
  return_url: string | null;
  created_at: number;
  mismatches: number;
  salt: Buffer;
  initiated_tx_hash: Buffer | null;
  confirm_tx_hash: Buffer | null;
}

export function toOrder(row: OrderColumns): Order {
  return {
    id: row.id,
    referenceKey: row.reference_key.toString("hex"),
    packageId: row.package_id,
    clientDomainId: row.client_domain_id,
    organizationId: row.organization_id,
    environment: row.environment,
    user: row.user_address,
    required: row.required,
    optional: row.optional,
    attempt: row.attempt,
    status: row.status,
    statusAt: row.status_at,
    scannedAt: row.scanned_at,
    failureReason: row.failure_reason,
    sequence: row.sequence,
    callback: row.callback,
    expiration: row.expiration,
    reference: row.reference,
    purpose: row.purpose,
    returnUrl: row.return_url,
    createdAt: row.created_at,
    mismatches: row.mismatches,
    salt: hexOfBytes(row.salt),
    initiatedTxHash: row.initiated_tx_hash === null ? null : hexOfBytes(row.initiated_tx_hash),
    confirmTxHash: row.confirm_tx_hash === null ? null : hexOfBytes(row.confirm_tx_hash),
  };
}

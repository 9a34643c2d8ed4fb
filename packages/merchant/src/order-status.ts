import type { Hex32 } from "@svc/protocol";

import type { Members } from "./members.ts";

const statuses = [
  "PENDING",
  "INITIATING",
  "INITIATED",
  "CONFIRMING",
  "CONFIRMED",
  "FAILED",
] as const;

/** The status of an order (service document, KYC order statuses). */
export type Status = (typeof statuses)[number];

/** Why an order failed. More may be added: treat an unknown reason like the others. */
export type FailureReason =
  | "USER_DECLINED"
  | "EXPIRED"
  | "CANCELLED"
  | "INVALID_CONFIRM_DATA"
  | "FIELD_REVOKED"
  | "INITIATE_TX_FAILED"
  | "CONFIRM_TX_FAILED"
  | (string & {});

/** A status and what belongs to it (service document, KYC order). */
export interface OrderStatus {
  status: Status;
  /** Unix seconds: when the order reached it. */
  createdAt: number;
  /** Once it is final. */
  initiatedTxHash?: Hex32;
  /** Once it is final. */
  confirmTxHash?: Hex32;
  /** Only with FAILED. */
  failureReason?: FailureReason;
}

/** Reads a status; faults are those of `members`. */
export function readOrderStatus(members: Members): OrderStatus {
  return {
    status: members.oneOf("status", statuses),
    createdAt: members.count("createdAt"),
    ...(members.has("initiatedTxHash") && { initiatedTxHash: members.hash("initiatedTxHash") }),
    ...(members.has("confirmTxHash") && { confirmTxHash: members.hash("confirmTxHash") }),
    ...(members.has("failureReason") && { failureReason: members.text("failureReason") }),
  };
}

import type { Address } from "@svc/protocol";

import { openBody, openMembers } from "./members.ts";

/** What every KYB event contains (decisions, section 6, Webhook events). */
interface KybEventBase {
  /** The same in every delivery of this event: store it. */
  eventId: string;
  /** Of the request. */
  streamId: string;
  /** Counts the events of one request without a gap, from 1. */
  seq: number;
  /** Unix seconds: when the event happened. */
  timestamp: number;
  livemode: boolean;
  data: Readonly<Record<string, unknown>>;
}

const kinds = [
  "kyb.data_request.pending_approval",
  "kyb.data_request.released",
  "kyb.data_request.refused",
  "kyb.data_request.cancelled",
  "kyb.data_request.failed",
  "kyb.signature_request.pending_approval",
  "kyb.signature_request.signed",
  "kyb.signature_request.refused",
  "kyb.signature_request.expired",
  "kyb.signature_request.cancelled",
  "kyb.signature_request.failed",
] as const;

/** A business says that it continues in another wallet. */
export const walletChanged = "kyb.business.wallet_address_changed";

/** A request changed. */
export interface KybEvent extends KybEventBase {
  event: (typeof kinds)[number];
  requestId: string;
  business: Address;
  status: string;
  reason?: string;
  /** Present when the business has signed. Nothing says that it is genuine: see `verifyBusinessSignature`. */
  signature?: string;
  /** Present for a release. Nothing in it is verified: see `verifyAttestation`. */
  attestation?: string;
}

/** A business continues in another wallet. This event has a stream of its own. */
export interface WalletChangedEvent extends KybEventBase {
  event: typeof walletChanged;
  /** The wallet by which you have known the business until now. */
  business: Address;
  /** Not verified here: `verifyWalletChange` does that, and says what it proves. */
  newBusiness: Address;
  /** Unix seconds. */
  changedAt: number;
  attestation: string;
}

/** A genuine event of a kind that this SDK does not know: answer 200 and go on. */
export interface UnknownKybEvent extends KybEventBase {
  event: "unknown";
  name: string;
  attestation?: string;
}

/** Any event that a KYB endpoint gets; `event` tells them apart. */
export type AnyKybEvent = KybEvent | WalletChangedEvent | UnknownKybEvent;

/**
 * Reads the body of a KYB event.
 *
 * @param fault makes the error for a member that is wrong, or for `body`
 */
export function readKybEvent(body: string, fault: (member: string) => Error): AnyKybEvent {
  const envelope = openBody(body, fault);
  const name = envelope.text("event");
  const data = envelope.record("data");
  const base = {
    eventId: envelope.text("event_id"),
    streamId: envelope.text("stream_id"),
    seq: envelope.count("seq"),
    timestamp: envelope.count("timestamp"),
    livemode: envelope.flag("livemode"),
    data,
    ...(envelope.has("attestation") && { attestation: envelope.text("attestation") }),
  };
  const members = openMembers(data, (member) => fault(`data.${member}`));
  if (name === walletChanged)
    return {
      event: name,
      ...base,
      business: members.address("business_wallet_address"),
      newBusiness: members.address("new_business_wallet_address"),
      changedAt: members.count("changed_at"),
      attestation: envelope.text("attestation"),
    };
  const event = kinds.find((kind) => kind === name);
  if (event === undefined) return { event: "unknown", name, ...base };
  return {
    event,
    ...base,
    requestId: members.text("request_id"),
    business: members.address("business_wallet_address"),
    status: members.text("status"),
    ...(members.has("reason") && { reason: members.text("reason") }),
    ...(members.has("signature") && { signature: members.text("signature") }),
  };
}

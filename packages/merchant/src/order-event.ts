import { isFieldName, type Address, type FieldName, type Hex32, type Info } from "@svc/protocol";

import { decodeInfos } from "./infos.ts";
import { openBody, openMembers, type Members } from "./members.ts";
import { readOrderStatus, type OrderStatus } from "./order-status.ts";

/** What every event about an order contains. */
interface OrderEventBase {
  /** The same in every delivery of this event. */
  eventId: string;
  /** Counts the events of one order without a gap, from 1, across its attempts. */
  sequence: number;
  /** Unix seconds: when the event happened. */
  timestamp: number;
  livemode: boolean;
  referenceKey: string;
  /** Your own reference, as you gave it. */
  reference?: string;
  attempt: number;
  user: Address;
}

/** The order reached a status. */
export interface StatusUpdated extends OrderEventBase, OrderStatus {
  event: "status.updated";
  /** The names that were asked for. */
  fields: string[];
  /** Unix seconds: until when the user may approve. */
  expiration: number;
}

/** What the user released. */
export interface DataTransferred extends OrderEventBase {
  event: "data.transferred";
  /** Store these: you can pass them to `valid` and `verifyReceipt` later. */
  infos: readonly Info[];
  expiration: number;
  initiatedTxHash: Hex32;
}

/**
 * Fields that were delivered earlier were revoked by their issuer or withdrawn by the user, or the issuer was distrusted
 * or the user deleted.
 */
export interface DataInvalidated extends OrderEventBase {
  event: "data.invalidated";
  fields: FieldName[];
}

/** An event of an order, as `applyEvent` takes it. */
export type OrderEvent = StatusUpdated | DataTransferred | DataInvalidated;

/** A genuine event of a kind that this SDK does not know yet: answer 200 and go on. */
export interface UnknownEvent {
  event: "unknown";
  name: string;
  eventId: string;
  sequence: number;
  timestamp: number;
  livemode: boolean;
  data: Readonly<Record<string, unknown>>;
}

/**
 * Reads the body of an event, as webhooks carry it (decisions, section 7, KYC).
 *
 * @param fault makes the error for a member that is wrong, or for `body`
 * @throws {MerchantError} infos_invalid, in addition to the errors that `fault` makes
 */
export function readEvent(body: string, fault: Fault): OrderEvent | UnknownEvent {
  const envelope = openBody(body, fault);
  const name = envelope.text("event");
  const base = {
    eventId: envelope.text("event_id"),
    sequence: envelope.count("sequence"),
    timestamp: envelope.count("timestamp"),
    livemode: envelope.flag("livemode"),
  };
  const data = envelope.record("data");
  const members = openMembers(data, (member) => fault(`data.${member}`));
  switch (name) {
    case "status.updated":
      return {
        event: name,
        ...base,
        ...readOrder(members, fault),
        ...readOrderStatus(members),
        fields: members.texts("fields"),
        expiration: members.count("expiration"),
      };
    case "data.transferred":
      return {
        event: name,
        ...base,
        ...readOrder(members, fault),
        infos: decodeInfos(members.text("infos")),
        expiration: members.count("expiration"),
        initiatedTxHash: members.hash("initiatedTxHash"),
      };
    case "data.invalidated":
      return {
        event: name,
        ...base,
        ...readOrder(members, fault),
        fields: readFields(members, fault),
      };
    default:
      return { event: "unknown", name, ...base, data };
  }
}

type Fault = (member: string) => Error;
type OrderMembers = Pick<OrderEventBase, "referenceKey" | "reference" | "attempt" | "user">;

function readOrder(members: Members, fault: Fault): OrderMembers {
  const referenceKey = members.text("referenceKey");
  if (!/^[0-9a-f]{64}$/.test(referenceKey)) throw fault("data.referenceKey");
  return {
    referenceKey,
    ...(members.has("reference") && { reference: members.anyText("reference") }),
    attempt: members.count("attempt"),
    user: members.address("user"),
  };
}

function readFields(members: Members, fault: Fault): FieldName[] {
  const fields = members.texts("fields").filter((field) => isFieldName(field));
  if (fields.length < members.texts("fields").length) throw fault("data.fields");
  return fields;
}

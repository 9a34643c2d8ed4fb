import { createHmac, timingSafeEqual } from "node:crypto";

import {
  isFieldName,
  isRecord,
  textOfBytes,
  type Address,
  type FieldName,
  type Hex32,
  type Info,
} from "@svc/protocol";

import { decodeInfos } from "./infos.ts";
import { openMembers, type Members } from "./members.ts";
import { MerchantError } from "./merchant-error.ts";
import { readOrderStatus, type OrderStatus } from "./order-status.ts";

/** How far `t` may be from now, either way (service document, Limits: KYC webhook timestamp tolerance). */
const toleranceSeconds = 300;

/** One delivery, exactly as it came. */
export interface Delivery {
  /** Of the request: Node's `request.headers` or a `Headers`. Only `Svc-Signature` is looked at. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The bytes as received: a body that was parsed and written again has other bytes, and never matches. */
  rawBody: Uint8Array;
  /** The package's signing key; for the time of a change, its successor too. */
  signingKeys: readonly string[];
  /** Unix seconds. */
  now: number;
}

/** What every event about an order says. */
interface OrderEventBase {
  /** The same in every delivery of this event. */
  eventId: string;
  /** Counts the events of one order without a gap, from 1, across its attempts. */
  sequence: number;
  /** Unix seconds: when the event happened. */
  timestamp: number;
  livemode: boolean;
  referenceKey: string;
  /** Your own, as you gave it. */
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
  /** Store these: `valid` takes them later, and `verifyReceipt` too. */
  infos: readonly Info[];
  expiration: number;
  initiatedTxHash: Hex32;
}

/** Fields that were delivered earlier were revoked by their issuer or withdrawn by the user. */
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
 * Verifies a KYC webhook and gives its event (service document, Authentication, 5): `Svc-Signature: t=<Unix
 * seconds>,s=<hex>`, `s` = HMAC-SHA256 of `<t>.<raw body>`. There is no event unless it is genuine and from now.
 *
 * The other headers (`webhook-signature`, `Svc-Event-Id`, ...) are not looked at. Deliveries are repeated until your 2xx:
 * store `eventId`, or keep the state with `applyEvent`, which does not mind.
 *
 * @throws {MerchantError} webhook_refused, its `reason` is header, signature, timestamp, or the member of the body;
 * configuration_invalid for missing keys or time; infos_invalid
 */
export function verifyWebhook(delivery: Delivery): OrderEvent | UnknownEvent {
  const { rawBody, signingKeys, now } = delivery;
  // An empty key signs as well as any other, for everybody.
  if (signingKeys.length === 0 || signingKeys.includes("")) throw misconfigured("signingKeys");
  if (!Number.isFinite(now)) throw misconfigured("now");
  if (!(rawBody instanceof Uint8Array)) throw misconfigured("rawBody");
  const { timestamp, signature } = readHeader(delivery.headers);
  // Every key is tried, so that the time taken does not tell which one fits.
  const fits = signingKeys.map((key) => isSignature(signature, { key, timestamp, rawBody }));
  if (!fits.includes(true)) throw refused("signature");
  if (Math.abs(now - Number(timestamp)) > toleranceSeconds) throw refused("timestamp");
  return readEvent(rawBody);
}

const headerName = "svc-signature";

function readHeader(headers: Delivery["headers"]): { timestamp: string; signature: Buffer } {
  const value =
    headers instanceof Headers
      ? headers.get(headerName)
      : Object.entries(headers).find(([name]) => name.toLowerCase() === headerName)?.[1];
  const match = typeof value === "string" ? /^t=(\d{1,12}),s=([0-9a-f]{64})$/.exec(value) : null;
  const [, timestamp, hex] = match ?? [];
  if (timestamp === undefined || hex === undefined) throw refused("header");
  return { timestamp, signature: Buffer.from(hex, "hex") };
}

interface Signed {
  key: string;
  timestamp: string;
  rawBody: Uint8Array;
}

function isSignature(signature: Buffer, { key, timestamp, rawBody }: Signed): boolean {
  const hmac = createHmac("sha256", key).update(`${timestamp}.`).update(rawBody);
  return timingSafeEqual(signature, hmac.digest());
}

function readEvent(rawBody: Uint8Array): OrderEvent | UnknownEvent {
  const envelope = openMembers(parseObject(rawBody), refused);
  const name = envelope.text("event");
  const of = {
    eventId: envelope.text("event_id"),
    sequence: envelope.count("sequence"),
    timestamp: envelope.count("timestamp"),
    livemode: envelope.flag("livemode"),
  };
  const data = envelope.record("data");
  const members = openMembers(data, (member) => refused(`data.${member}`));
  switch (name) {
    case "status.updated":
      return {
        event: name,
        ...of,
        ...readOrder(members),
        ...readOrderStatus(members),
        fields: members.texts("fields"),
        expiration: members.count("expiration"),
      };
    case "data.transferred":
      return {
        event: name,
        ...of,
        ...readOrder(members),
        infos: decodeInfos(members.text("infos")),
        expiration: members.count("expiration"),
        initiatedTxHash: members.hash("initiatedTxHash"),
      };
    case "data.invalidated":
      return { event: name, ...of, ...readOrder(members), fields: readFields(members) };
    default:
      return { event: "unknown", name, ...of, data };
  }
}

type OrderMembers = Pick<OrderEventBase, "referenceKey" | "reference" | "attempt" | "user">;

function readOrder(members: Members): OrderMembers {
  const referenceKey = members.text("referenceKey");
  if (!/^[0-9a-f]{64}$/.test(referenceKey)) throw refused("data.referenceKey");
  return {
    referenceKey,
    ...(members.has("reference") && { reference: members.anyText("reference") }),
    attempt: members.count("attempt"),
    user: members.address("user"),
  };
}

function readFields(members: Members): FieldName[] {
  const fields = members.texts("fields").filter((field) => isFieldName(field));
  if (fields.length < members.texts("fields").length) throw refused("data.fields");
  return fields;
}

function parseObject(rawBody: Uint8Array): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(textOfBytes(rawBody) ?? "");
    if (isRecord(value)) return value;
  } catch {
    // Refused below, without the parser's message: it quotes the body.
  }
  throw refused("body");
}

function refused(reason: string): MerchantError {
  return new MerchantError("webhook_refused", { reason });
}

function misconfigured(reason: string): MerchantError {
  return new MerchantError("configuration_invalid", { reason });
}

import { createHmac } from "node:crypto";
import { svcSignatureHeader } from "@svc/protocol";
import type { Channel } from "./event.ts";

/** One attempt, as it is signed. */
export interface Attempt {
  readonly eventId: string;
  readonly body: Uint8Array;
  /** From 1, over all runs of the schedule. */
  readonly number: number;
  /** Unix seconds: the time of the attempt, not of the event. */
  readonly timestamp: number;
}

/** What is the channel's own; the rest is common to all. */
const headersOfChannel: Record<Channel, (key: string, attempt: Attempt) => Record<string, string>> =
  {
    kyc: (key, { timestamp, body }) => ({
      "svc-signature": svcSignatureHeader({
        timestamp,
        signature: macOf(key, `${timestamp}.`, body).toString("hex"),
      }),
    }),
  };

/**
 * The headers of an attempt. Both signatures are keyed with the UTF-8 bytes of the signing key: ours over `<t>.<body>`,
 * that of Standard Webhooks (its `raw` keys) over `<id>.<t>.<body>`.
 *
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function headersOf(channel: Channel, key: string, attempt: Attempt): Record<string, string> {
  const { eventId, timestamp, body } = attempt;
  const standard = macOf(key, `${eventId}.${timestamp}.`, body).toString("base64");
  return {
    "content-type": "application/json",
    "user-agent": "svc-webhooks/1",
    "svc-event-id": eventId,
    "svc-delivery-attempt": String(attempt.number),
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": `v1,${standard}`,
    ...headersOfChannel[channel](key, attempt),
  };
}

function macOf(key: string, prefix: string, body: Uint8Array): Buffer {
  return createHmac("sha256", key).update(prefix).update(body).digest();
}

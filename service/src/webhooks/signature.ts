import { createHmac } from "node:crypto";
import { signedWebhookText, svcSignatureHeader } from "@svc/protocol";
import type { Channel } from "./event.ts";

/** One try of one event. */
export interface Try {
  readonly eventId: string;
  readonly body: string;
  /** From 1. */
  readonly attempt: number;
  /** Unix seconds. */
  readonly at: number;
}

/**
 * The headers of a try. Both signatures are keyed with the UTF-8 bytes of the signing key: ours over `<t>.<body>`, that
 * of Standard Webhooks over `<id>.<t>.<body>`.
 *
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
const headersOfChannel: Record<Channel, (key: string, given: Try) => Record<string, string>> = {
  kyc: (key, { body, at }) => ({
    "svc-signature": svcSignatureHeader({
      timestamp: at,
      signature: macOf(key, signedWebhookText(at, body)).toString("hex"),
    }),
  }),
};

export function headersOf(channel: Channel, key: string, given: Try): Record<string, string> {
  const standard = macOf(key, `${given.eventId}.${signedWebhookText(given.at, given.body)}`);
  return {
    "content-type": "application/json",
    "user-agent": "svc-webhooks/1",
    "svc-event-id": given.eventId,
    "svc-delivery-attempt": String(given.attempt),
    "webhook-id": given.eventId,
    "webhook-timestamp": String(given.at),
    "webhook-signature": `v1,${standard.toString("base64")}`,
    ...headersOfChannel[channel](key, given),
  };
}

function macOf(key: string, text: string): Buffer {
  return createHmac("sha256", key).update(text).digest();
}

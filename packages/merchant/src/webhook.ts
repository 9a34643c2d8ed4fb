import { parseSvcSignature } from "@svc/protocol";

import { readEvent, type OrderEvent, type UnknownEvent } from "./order-event.ts";
import { readSignedBody, refused, type SignedDelivery } from "./signed-delivery.ts";

/** One delivery of an order's event, exactly as it came. */
export interface Delivery extends SignedDelivery {
  /** The package's signing key; while you change to a new one, its successor too. */
  signingKeys: readonly string[];
}

/**
 * Verifies a KYC webhook and returns its event (service document, Authentication, 5):
 * `Svc-Signature: t=<Unix seconds>,s=<hex>`, `s` = HMAC-SHA256 of `<t>.<raw body>`. An event is only returned if it is
 * genuine and was signed just now.
 *
 * The other headers (`webhook-signature`, `Svc-Event-Id`, ...) are not read. Deliveries are repeated until your 2xx:
 * store `eventId`, or keep the state with `applyEvent`, on which a repeated event has no effect.
 *
 * @throws {MerchantError} webhook_refused, its `reason` is header, signature, timestamp, or the member of the body;
 * configuration_invalid for missing keys, headers or bytes; infos_invalid
 */
export function verifyWebhook(delivery: Delivery): OrderEvent | UnknownEvent {
  const body = readSignedBody(delivery, delivery.signingKeys, {
    header: "svc-signature",
    option: "signingKeys",
    parse(header) {
      const parsed = parseSvcSignature(header);
      return parsed && { timestamp: parsed.timestamp, signatures: [parsed.signature] };
    },
  });
  return readEvent(body, refused);
}

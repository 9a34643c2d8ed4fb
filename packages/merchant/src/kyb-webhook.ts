import { parseSvcKybSignature } from "@svc/protocol";

import { readKybEvent, type AnyKybEvent } from "./kyb-event.ts";
import { readSignedBody, refused, type SignedDelivery } from "./signed-delivery.ts";

/** One delivery to your KYB endpoint, exactly as it came. */
export interface KybDelivery extends SignedDelivery {
  /** The endpoint's secret; for 24 hours after a rotation the old one too. */
  secrets: readonly string[];
}

/**
 * Verifies a KYB webhook and returns its event: `Svc-KYB-Signature: t=..,v1=..,kv=..`, `v1` = HMAC-SHA256 of
 * `<t>.<raw body>` (decisions, section 7). One pair of the header has to match one of the secrets. That proves that the
 * service sent the event, and sent it just now. Only the attestation proves what was released, or where a business
 * moved: see `verifyAttestation` and `verifyWalletChange`.
 *
 * @throws {MerchantError} webhook_refused, its `reason` is header, signature, timestamp, or the member of the body;
 * configuration_invalid for missing secrets, headers or bytes
 */
export function verifyKybWebhook(delivery: KybDelivery): AnyKybEvent {
  const body = readSignedBody(delivery, delivery.secrets, {
    header: "svc-kyb-signature",
    option: "secrets",
    parse(header) {
      const parsed = parseSvcKybSignature(header);
      if (parsed === null) return null;
      const signatures = parsed.signatures.map(({ signature }) => signature);
      return { timestamp: parsed.timestamp, signatures };
    },
  });
  return readKybEvent(body, refused);
}

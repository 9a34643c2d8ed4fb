import { createHmac, timingSafeEqual } from "node:crypto";

import { isRecord, parseSvcKybSignature, textOfBytes } from "@svc/protocol";

import { readKybEvent, type AnyKybEvent } from "./kyb-event.ts";
import { MerchantError } from "./merchant-error.ts";
import { areSecrets, headerOf, type Delivery } from "./webhook.ts";

/** How far `t` may be from now, either way. */
const toleranceSeconds = 300;

/** One delivery to your KYB endpoint, exactly as it came. */
export type KybDelivery = Omit<Delivery, "signingKeys"> & {
  /** The endpoint's secret; for 24 hours after a rotation the old one too. */
  secrets: readonly string[];
};

/**
 * Verifies a KYB webhook and gives its event: `Svc-KYB-Signature: t=..,v1=..,kv=..`, `v1` = HMAC-SHA256 of `<t>.<raw
 * body>` (decisions, section 7). One pair of the header and one secret have to fit. It shows that the event is from the
 * service, and now; what was released, or where a business moved, is shown by its attestation alone: see `verifyAttestation` and
 * `verifyWalletChange`.
 *
 * @throws {MerchantError} webhook_refused, its `reason` is header, signature, timestamp, or the member of the body;
 * configuration_invalid for missing secrets, headers, bytes or time
 */
export function verifyKybWebhook(delivery: KybDelivery): AnyKybEvent {
  const { rawBody, secrets, now } = delivery;
  if (!areSecrets(secrets)) throw misconfigured("secrets");
  if (!Number.isFinite(now)) throw misconfigured("now");
  if (!(rawBody instanceof Uint8Array)) throw misconfigured("rawBody");
  if (!isRecord(delivery.headers)) throw misconfigured("headers");
  const value = headerOf(delivery.headers, "svc-kyb-signature");
  const parsed = value === null ? null : parseSvcKybSignature(value);
  if (parsed === null) throw refused("header");
  // Every pair is tried, so that the time taken does not tell which one fits.
  const fits = secrets.flatMap((secret) => {
    const mac = createHmac("sha256", secret)
      .update(`${parsed.timestamp}.`)
      .update(rawBody)
      .digest();
    return parsed.signatures.map(({ signature }) =>
      timingSafeEqual(Buffer.from(signature, "hex"), mac),
    );
  });
  if (!fits.includes(true)) throw refused("signature");
  if (Math.abs(now - parsed.timestamp) > toleranceSeconds) throw refused("timestamp");
  return readKybEvent(textOfBytes(rawBody) ?? "", refused);
}

function refused(reason: string): MerchantError {
  return new MerchantError("webhook_refused", { reason });
}

function misconfigured(reason: string): MerchantError {
  return new MerchantError("configuration_invalid", { reason });
}

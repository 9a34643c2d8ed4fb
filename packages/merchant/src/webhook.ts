import { createHmac, timingSafeEqual } from "node:crypto";

import { isRecord, parseSvcSignature, type SvcSignature, textOfBytes } from "@svc/protocol";

import { MerchantError } from "./merchant-error.ts";
import { readEvent, type OrderEvent, type UnknownEvent } from "./order-event.ts";

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

/**
 * Verifies a KYC webhook and gives its event (service document, Authentication, 5): `Svc-Signature: t=<Unix
 * seconds>,s=<hex>`, `s` = HMAC-SHA256 of `<t>.<raw body>`. There is no event unless it is genuine and from now.
 *
 * The other headers (`webhook-signature`, `Svc-Event-Id`, ...) are not looked at. Deliveries are repeated until your 2xx:
 * store `eventId`, or keep the state with `applyEvent`, which does not mind.
 *
 * @throws {MerchantError} webhook_refused, its `reason` is header, signature, timestamp, or the member of the body;
 * configuration_invalid for missing keys, headers, bytes or time; infos_invalid
 */
export function verifyWebhook(delivery: Delivery): OrderEvent | UnknownEvent {
  const { rawBody, signingKeys, now } = delivery;
  if (!areSecrets(signingKeys)) throw misconfigured("signingKeys");
  if (!Number.isFinite(now)) throw misconfigured("now");
  if (!(rawBody instanceof Uint8Array)) throw misconfigured("rawBody");
  if (!isRecord(delivery.headers)) throw misconfigured("headers");
  const { timestamp, signature } = readHeader(delivery.headers);
  // Every key is tried, so that the time taken does not tell which one fits.
  const fits = signingKeys.map((key) => isSignature(signature, { key, timestamp, rawBody }));
  if (!fits.includes(true)) throw refused("signature");
  if (Math.abs(now - timestamp) > toleranceSeconds) throw refused("timestamp");
  return readEvent(textOfBytes(rawBody) ?? "", refused);
}

/** Whether there are secrets, and each is one: an empty one signs as well as any other, for everybody. */
export function areSecrets(given: unknown): boolean {
  return Array.isArray(given) && given.length > 0 && given.every(isSecret);
}

function isSecret(each: unknown): boolean {
  return typeof each === "string" && each !== "";
}

/** The one value of a header by its lower-case name; null where it is absent or repeated. */
export function headerOf(headers: Delivery["headers"], headerName: string): string | null {
  const value =
    headers instanceof Headers
      ? headers.get(headerName)
      : Object.entries(headers).find(([name]) => name.toLowerCase() === headerName)?.[1];
  return typeof value === "string" ? value : null;
}

function readHeader(headers: Delivery["headers"]): SvcSignature {
  const value = headerOf(headers, "svc-signature");
  const parsed = value === null ? null : parseSvcSignature(value);
  if (parsed === null) throw refused("header");
  return parsed;
}

interface Signed {
  key: string;
  timestamp: number;
  rawBody: Uint8Array;
}

function isSignature(signature: string, { key, timestamp, rawBody }: Signed): boolean {
  const hmac = createHmac("sha256", key).update(`${timestamp}.`).update(rawBody);
  return timingSafeEqual(Buffer.from(signature, "hex"), hmac.digest());
}

function refused(reason: string): MerchantError {
  return new MerchantError("webhook_refused", { reason });
}

function misconfigured(reason: string): MerchantError {
  return new MerchantError("configuration_invalid", { reason });
}

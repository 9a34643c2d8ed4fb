import { createHmac, timingSafeEqual } from "node:crypto";

import { isRecord, textOfBytes } from "@svc/protocol";

import { MerchantError, misconfigured } from "./merchant-error.ts";
import { readNow } from "./unix-time.ts";

/** How far `t` may be from now, either way (service document, Limits: webhook timestamp tolerance). */
const toleranceSeconds = 300;

/** One delivery of a webhook, exactly as it came. */
export interface SignedDelivery {
  /** The headers of the request: Node's `request.headers`, the like, or a `Headers`. Only the signature is read. */
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>;
  /** The bytes as received: a body that was parsed and serialised again has other bytes, and never matches. */
  rawBody: Uint8Array;
  /** Unix seconds. Default: this machine's clock. */
  now?: number;
}

/** How deliveries of one kind are signed. */
interface Scheme {
  /** The header with the signatures, in lower case. */
  header: string;
  /** The option that holds the secrets. */
  option: "secrets" | "signingKeys";
  /** @returns null for a malformed header */
  parse: (header: string) => { timestamp: number; signatures: readonly string[] } | null;
}

/**
 * Returns the body of a delivery if one of its signatures is the HMAC-SHA256 of `<t>.<raw body>` by one of the secrets.
 *
 * @throws {MerchantError} webhook_refused, its `reason` is header, signature or timestamp; configuration_invalid
 */
export function readSignedBody(
  { headers, rawBody, now: given }: SignedDelivery,
  secrets: readonly string[],
  { header, option, parse }: Scheme,
): string {
  if (!areSecrets(secrets)) throw misconfigured(option);
  const now = readNow(given);
  if (!(rawBody instanceof Uint8Array)) throw misconfigured("rawBody");
  if (!isRecord(headers)) throw misconfigured("headers");
  const value = headerOf(headers, header);
  const parsed = value === null ? null : parse(value);
  if (parsed === null) throw refused("header");
  const { timestamp, signatures } = parsed;
  // Every pair is tried, so that the time taken does not reveal which one matches.
  const fits = secrets.flatMap((secret) => {
    const mac = createHmac("sha256", secret).update(`${timestamp}.`).update(rawBody).digest();
    return signatures.map((signature) => timingSafeEqual(Buffer.from(signature, "hex"), mac));
  });
  if (!fits.includes(true)) throw refused("signature");
  if (Math.abs(now - timestamp) > toleranceSeconds) throw refused("timestamp");
  return textOfBytes(rawBody) ?? "";
}

/** @param reason names the check, or the member of the body */
export function refused(reason: string): MerchantError {
  return new MerchantError("webhook_refused", { reason });
}

/** Whether there are secrets, and none is empty: anybody can sign with an empty one. */
function areSecrets(given: unknown): boolean {
  return Array.isArray(given) && given.length > 0 && given.every(isSecret);
}

function isSecret(each: unknown): boolean {
  return typeof each === "string" && each !== "";
}

/** The one value of a header by its lower-case name; null if it is absent or repeated. */
function headerOf(headers: SignedDelivery["headers"], headerName: string): string | null {
  // Not `instanceof`: frameworks and test runners bring a Headers of their own.
  const value =
    typeof headers.get === "function"
      ? headers.get(headerName)
      : Object.entries(headers).find(([name]) => name.toLowerCase() === headerName)?.[1];
  // `headersDistinct` of Node and gateways such as AWS's hold a list for each name.
  const [one, ...others] = [value].flat();
  return typeof one === "string" && others.length === 0 ? one : null;
}

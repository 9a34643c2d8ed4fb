import { createHmac, createSecretKey } from "node:crypto";
import { svcKybSignatureHeader, svcSignatureHeader } from "@svc/protocol";
import type { Secret } from "./endpoint-secret.ts";
import type { Channel } from "./event.ts";

/** What the headers of one attempt depend on. */
export interface Attempt {
  readonly eventId: string;
  readonly body: Uint8Array;
  /** From 1, over all runs of the schedule. */
  readonly number: number;
  /** Unix seconds: the time of the attempt, not of the event. */
  readonly timestamp: number;
}

/** The signature header of the channel. */
function ownHeaders(
  channel: Channel,
  secrets: readonly Secret[],
  { timestamp, body }: Attempt,
): Record<string, string> {
  const signatures = secrets.map(({ version, secret }) => ({
    version,
    signature: macOf(secret, `${timestamp}.`, body).toString("hex"),
  }));
  if (channel === "kyb")
    return { "Svc-KYB-Signature": svcKybSignatureHeader({ timestamp, signatures }) };
  const [first] = signatures;
  if (first === undefined) throw new Error("an attempt needs a secret");
  return { "Svc-Signature": svcSignatureHeader({ timestamp, signature: first.signature }) };
}

/**
 * The headers of an attempt. Both signatures are keyed with the UTF-8 bytes of a secret: ours over `<t>.<body>`, that
 * of Standard Webhooks (its `raw` keys) over `<id>.<t>.<body>`. Names have the capitals of the service document,
 * because there are receivers that compare them case-sensitively.
 *
 * @param secrets the newest first; for KYC only the package's signing key
 * @see https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
 */
export function headersOf(
  channel: Channel,
  secrets: readonly Secret[],
  attempt: Attempt,
): Record<string, string> {
  const { eventId, timestamp, body } = attempt;
  const standard = secrets.map(
    ({ secret }) => `v1,${macOf(secret, `${eventId}.${timestamp}.`, body).toString("base64")}`,
  );
  return {
    "content-type": "application/json",
    "user-agent": "svc-webhooks/1",
    "Svc-Event-Id": eventId,
    "Svc-Delivery-Attempt": String(attempt.number),
    "webhook-id": eventId,
    "webhook-timestamp": String(timestamp),
    "webhook-signature": standard.join(" "),
    ...ownHeaders(channel, secrets, attempt),
  };
}

function macOf(secret: string, prefix: string, body: Uint8Array): Buffer {
  // With a string as key, Node takes several times as long as with a KeyObject.
  const key = createSecretKey(secret, "utf8");
  return createHmac("sha256", key).update(prefix).update(body).digest();
}

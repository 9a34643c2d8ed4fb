// Signatures of KYC webhooks: service document, Authentication, 5; decisions section 7, KYC.
import { hmac } from "@noble/hashes/hmac";
import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes } from "./encoding.ts";

/** What `Svc-Signature` says. */
export interface SvcSignature {
  /** Unix seconds of the attempt. */
  readonly timestamp: number;
  /** 64 lower-case hex digits. */
  readonly signature: string;
}

/**
 * HMAC-SHA256 of `<timestamp>.<body>` in hex.
 *
 * @param given.key the package's signing key; its UTF-8 bytes are the key
 * @param given.body the bytes as sent
 */
export function svcSignature(given: {
  key: string;
  timestamp: number;
  body: string | Uint8Array;
}): string {
  const { key, timestamp, body } = given;
  const mac = hmac
    .create(sha256, bytesOfText(key))
    .update(bytesOfText(`${timestamp}.`))
    .update(typeof body === "string" ? bytesOfText(body) : body)
    .digest();
  return hexOfBytes(mac).slice(2);
}

/** The value of the header `Svc-Signature`. */
export function svcSignatureHeader({ timestamp, signature }: SvcSignature): string {
  return `t=${timestamp},s=${signature}`;
}

/** Reads the header; null unless it is written exactly as the service writes it. */
export function parseSvcSignature(header: string): SvcSignature | null {
  const match = /^t=(0|[1-9]\d{0,11}),s=([0-9a-f]{64})$/.exec(header);
  const [, timestamp, signature] = match ?? [];
  if (timestamp === undefined || signature === undefined) return null;
  return { timestamp: Number(timestamp), signature };
}

// Signatures of KYC and KYB webhooks: service document, Authentication, 5; decisions, section 7.
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

/** What `Svc-KYB-Signature` says: one signature for each live secret, the newest first. */
export interface SvcKybSignature {
  /** Unix seconds of the attempt. */
  readonly timestamp: number;
  readonly signatures: readonly {
    /** `kv`: the version of the endpoint's secret. */
    readonly version: number;
    /** `v1`: 64 lower-case hex digits, as {@link svcSignature} makes them. */
    readonly signature: string;
  }[];
}

/**
 * The value of the header `Svc-KYB-Signature`: `t=..,v1=..,kv=..`, followed by the pair of the old secret while it is
 * live.
 */
export function svcKybSignatureHeader({ timestamp, signatures }: SvcKybSignature): string {
  const pairs = signatures.map(({ version, signature }) => `,v1=${signature},kv=${version}`);
  return `t=${timestamp}${pairs.join("")}`;
}

/** Reads the header; null unless it is written exactly as the service writes it, with one pair or two. */
export function parseSvcKybSignature(header: string): SvcKybSignature | null {
  const match = /^t=(0|[1-9]\d{0,11})((?:,v1=[0-9a-f]{64},kv=[1-9]\d{0,8}){1,2})$/.exec(header);
  const [, timestamp, pairs] = match ?? [];
  if (timestamp === undefined || pairs === undefined) return null;
  const signatures = pairs
    .matchAll(/,v1=([0-9a-f]{64}),kv=(\d+)/g)
    .map(([, signature, version]) => ({
      version: Number(version),
      signature: signature ?? "",
    }));
  return { timestamp: Number(timestamp), signatures: [...signatures] };
}

import { hash } from "node:crypto";
import { canonicalJson } from "@svc/protocol";
import type { Channel } from "./event.ts";

/** The webhook endpoint to which a client domain's KYB events go. */
export interface Endpoint {
  readonly url: string;
  /** Version of the newest secret; it only rises. */
  readonly secretVersion: number;
  /** False in quarantine: events are held until it is reactivated. */
  readonly active: boolean;
  /** Unix seconds of the first registration. */
  readonly createdAt: number;
}

/**
 * The UUID under which queue, pace and concurrency of a receiver are kept. For KYC it is derived from client domain and
 * URL, without the query: that often differs from order to order while the receiver is the same. For KYB it is derived
 * from the client domain alone, so that its one endpoint keeps its id when its URL changes.
 *
 * @param of.url of a KYC event
 */
export function endpointIdOf(of: {
  channel: Channel;
  clientDomainId: string;
  url: string | null;
}): string {
  const [address = ""] = of.channel === "kyc" ? (of.url ?? "").split("?", 1) : [];
  const parts = canonicalJson(["svc-endpoint-v1", of.channel, of.clientDomainId, address]);
  const hex = hash("sha256", parts, "hex");
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    hex.slice(12, 16),
    hex.slice(16, 20),
    hex.slice(20, 32),
  ].join("-");
}

import { type Address, isRecord, parseAddress } from "@svc/protocol";

import { MerchantError } from "./merchant-error.ts";

/** The business for which a member logged in. The member stays the `user` (decisions section 2, Business login). */
export interface Business {
  /** The stable identity to store. */
  id: Address;
  name: string;
  domain?: string;
  /** True when the broker has checked the company's record. */
  verified: boolean;
  status: string;
}

/**
 * Reads the claim `ext`; null for a personal login.
 *
 * @throws {MerchantError} token_refused for a business login whose business cannot be read: a partial one is never
 * returned
 */
export function parseBusiness(ext: unknown): Business | null {
  if (!isRecord(ext) || ext["login_type"] !== "business") return null;
  const business = isRecord(ext["business"]) ? ext["business"] : {};
  const { name, domain, verified, status } = business;
  const id = typeof business["id"] === "string" ? parseAddress(business["id"]) : null;
  if (
    id === null ||
    typeof name !== "string" ||
    typeof verified !== "boolean" ||
    typeof status !== "string"
  ) {
    throw new MerchantError("token_refused", { reason: "ext" });
  }
  return { id, name, verified, status, ...(typeof domain === "string" && { domain }) };
}

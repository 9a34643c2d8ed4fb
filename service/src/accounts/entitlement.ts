import { invalidRequest } from "../platform/http/problems.ts";

/** The entitlements that the operator grants. */
const grantedEntitlements = ["kyb:data-request", "kyb:pii", "kyb:signature"] as const;
export type GrantedEntitlement = (typeof grantedEntitlements)[number];
/** The rights of an organization in the KYB API (service document, KYB concepts). Everybody may `kyb:read`. */
export type Entitlement = "kyb:read" | GrantedEntitlement;

/**
 * @throws {Problem} invalid_request for an unknown entitlement, and for `kyb:read`, which cannot be granted or
 * withdrawn
 */
export function parseGranted(text: string): GrantedEntitlement {
  if (text === "kyb:read") throw invalidRequest("every organization has kyb:read");
  const found = grantedEntitlements.find((each) => each === text);
  if (found === undefined)
    throw invalidRequest(`an entitlement is one of ${grantedEntitlements.join(", ")}`);
  return found;
}

/** All entitlements of an organization. */
export function entitlementsWith(granted: readonly string[]): ReadonlySet<Entitlement> {
  return new Set(["kyb:read", ...grantedEntitlements.filter((each) => granted.includes(each))]);
}

import { invalidRequest } from "../platform/http/problems.ts";

/** What an organization may do with the KYB API (service document, KYB concepts). Everybody may `kyb:read`. */
const entitlements = ["kyb:read", "kyb:data-request", "kyb:pii", "kyb:signature"] as const;
export type Entitlement = (typeof entitlements)[number];
/** Those that the operator grants. */
export type GrantedEntitlement = Exclude<Entitlement, "kyb:read">;

/** @throws {Problem} invalid_request for an unknown one, and for `kyb:read`, which cannot be granted or withdrawn */
export function parseGranted(text: string): GrantedEntitlement {
  const found = entitlements.find((each) => each === text);
  if (found === undefined)
    throw invalidRequest(`an entitlement is one of ${entitlements.join(", ")}`);
  if (found === "kyb:read") throw invalidRequest("every organization has kyb:read");
  return found;
}

/** All that an organization has. */
export function entitlementsWith(granted: readonly string[]): ReadonlySet<Entitlement> {
  return new Set(entitlements.filter((each) => each === "kyb:read" || granted.includes(each)));
}

import { isBlank, isShowable } from "@svc/protocol";
import { invalidRequest } from "../platform/http/problems.ts";

/** The account of a paying company. */
export interface Organization {
  readonly id: string;
  readonly name: string;
  readonly createdAt: number;
}

/** The role of a member. The last `owner` cannot leave; no route makes any other difference yet. */
export type Role = "owner" | "developer" | "viewer";

const roles: readonly Role[] = ["owner", "developer", "viewer"];

export interface OrganizationMember {
  /** Canonical address. */
  readonly user: string;
  readonly role: Role;
  readonly createdAt: number;
}

const organizationNameMax = 200;
const nameMax = 100;

/** @throws {Problem} invalid_request */
export function parseRole(text: string): Role {
  const role = roles.find((each) => each === text);
  if (role === undefined) throw invalidRequest(`role must be one of ${roles.join(", ")}`);
  return role;
}

/** Names are shown to people: 1 to 200 characters on one line (decisions section 1, Bounds). @throws {Problem} invalid_request */
export function parseOrganizationName(text: string): string {
  return parseShownName(text, organizationNameMax);
}

/** The name of a client or key: like {@link parseOrganizationName}, at most 100 characters. @throws {Problem} invalid_request */
export function parseName(text: string): string {
  return parseShownName(text, nameMax);
}

/** The name of a payment, as on a bank statement: 1 to 200 characters on one line. @throws {Problem} invalid_request */
export function parsePayment(text: string): string {
  return parseShownName(text, organizationNameMax, "payment");
}

/**
 * Whether the organization still has an owner after `user` takes `role` or leaves (null): without one nobody could
 * manage it.
 */
export function keepsOwner(
  members: readonly Pick<OrganizationMember, "user" | "role">[],
  change: { user: string; role: Role | null },
): boolean {
  return (
    change.role === "owner" ||
    members.some((member) => member.role === "owner" && member.user !== change.user)
  );
}

function parseShownName(text: string, most: number, label = "name"): string {
  const name = text.trim();
  if (isBlank(name) || name.length > most || name.includes("\n") || !isShowable(name)) {
    throw invalidRequest(
      `${label} must be 1 to ${most} characters on one line that can be seen, without control characters`,
    );
  }
  return name;
}

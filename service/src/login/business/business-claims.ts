import type { BusinessDirectory } from "./business-directory.ts";
import type { SeatRow } from "./business-seat.ts";
import { isBusinessScope } from "../authorization/scope.ts";

/** The claims that a login for a business stores; the others are read anew for each token. */
export interface BusinessClaims {
  readonly domain: string | null;
  /** Unix seconds. */
  readonly approved_at: number;
}

/** A family's claims as stored, and the seat that it stands on; null for a person's. */
export interface ClaimSource {
  readonly claims: Readonly<Record<string, unknown>>;
  readonly seat: SeatRow | null;
}

/**
 * `ext` of tokens, userinfo and introspection (decisions section 2, Business login): empty for a person. Names are read
 * from the roster each time, so nothing personal lies in the family.
 *
 * @param scope of the token: one that a refresh narrowed says nothing about the business
 */
export function extOf(
  ctx: { readonly businesses: BusinessDirectory },
  { claims, seat }: ClaimSource,
  scope: string,
): Readonly<Record<string, unknown>> {
  if (seat === null) return claims;
  if (!isBusinessScope(scope)) return {};
  const { name, authority } = ctx.businesses.readSeat(seat);
  return {
    login_type: "business",
    business: {
      id: seat.business,
      name: seat.name,
      domain: claims["domain"] ?? null,
      verified: seat.verifiedAt !== null,
      // Seats exist only in active businesses; tokens of any other are not live.
      status: "active",
    },
    acting_member: {
      id: seat.member,
      name,
      authority,
      voting_rights: seat.isVoting,
      is_creator: seat.isCreator,
    },
    approved_at: claims["approved_at"],
  };
}

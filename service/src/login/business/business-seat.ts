import type { Address } from "@svc/protocol";

/** A member's place in an active business, as stored; see the view `business_seat`. */
export interface SeatRow {
  readonly business: Address;
  readonly member: Address;
  /** Name of the business. */
  readonly name: string;
  /** As the contract packs it. */
  readonly charter: Buffer;
  /** Unix seconds since when an issuer vouches for the business's record; null if none does. */
  readonly verifiedAt: number | null;
  readonly memberId: string;
  readonly nameSealed: Buffer;
  readonly isVoting: boolean;
  readonly isCreator: boolean;
}

/** A seat as `seat_of` answers with it in a statement: bytes are hexadecimal digits. */
export interface SeatAnswer {
  business: Address;
  member: Address;
  name: string;
  charter: string;
  verified_at: number | null;
  member_id: string;
  name_sealed: string;
  is_voting: boolean;
  is_creator: boolean;
}

/** Null if there is none: the login is a person's, or its member may not act any more. */
export function seatOf(answer: SeatAnswer | null): SeatRow | null {
  if (answer === null) return null;
  return {
    business: answer.business,
    member: answer.member,
    name: answer.name,
    charter: Buffer.from(answer.charter, "hex"),
    verifiedAt: answer.verified_at,
    memberId: answer.member_id,
    nameSealed: Buffer.from(answer.name_sealed, "hex"),
    isVoting: answer.is_voting,
    isCreator: answer.is_creator,
  };
}

import type { Address } from "@svc/protocol";

/** A member's place in an active business, as stored; see the view `business_seat`. */
export interface SeatRow {
  readonly business: Address;
  readonly member: Address;
  /** What the business is called. */
  readonly name: string;
  /** As the contract packs it. */
  readonly charter: Buffer;
  /** Since when somebody vouches for its record, Unix seconds; null where nobody does. */
  readonly verifiedAt: number | null;
  readonly memberId: string;
  readonly nameSealed: Buffer;
  readonly isVoting: boolean;
  readonly isCreator: boolean;
}

/** The columns of a seat in a statement that joins it, if there is one. */
export interface SeatColumns {
  seat_business: Address | null;
  seat_member: Address;
  seat_name: string;
  seat_charter: Buffer;
  seat_verified_at: number | null;
  seat_member_id: string;
  seat_name_sealed: Buffer;
  seat_is_voting: boolean;
  seat_is_creator: boolean;
}

/** Null where the statement found none: a login of a person, or of nobody who may act any more. */
export function seatOf(row: SeatColumns): SeatRow | null {
  if (row.seat_business === null) return null;
  return {
    business: row.seat_business,
    member: row.seat_member,
    name: row.seat_name,
    charter: row.seat_charter,
    verifiedAt: row.seat_verified_at,
    memberId: row.seat_member_id,
    nameSealed: row.seat_name_sealed,
    isVoting: row.seat_is_voting,
    isCreator: row.seat_is_creator,
  };
}

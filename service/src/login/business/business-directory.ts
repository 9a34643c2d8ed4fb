import type { Address, Hex32 } from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import type { SeatRow } from "./business-seat.ts";

/** The question to the members of a business when one of them logs in for it. */
interface LoginQuestion {
  readonly loginId: string;
  readonly business: Address;
  /** Of the approval, see `businessLoginHash`. */
  readonly hash: Hex32;
  readonly clientDomainId: string;
  /** Unix seconds. */
  readonly expiresAt: number;
  readonly actingMember: Address;
  /** The acting member's own approval: the first vote. */
  readonly approval: {
    readonly epoch: number;
    readonly validUntil: number;
    /** 65 bytes in hex. */
    readonly signature: string;
  };
}

/** A member's name and power in a business, as its tokens state them. */
interface MemberStanding {
  readonly name: string;
  /** `SOLE`: its approval is enough for a login; `JOINT`: others must approve too; `NONE`: it does not vote. */
  readonly authority: "SOLE" | "JOINT" | "NONE";
}

/** The businesses, as far as a login needs them; passed by `compose.ts`, since this slice does not know theirs. */
export interface BusinessDirectory {
  /**
   * Asks the members, in the caller's transaction, with the acting member's approval as the first vote. Where that is
   * enough, everything that follows has happened when this returns.
   *
   * @throws {Problem} business_not_found, ballot_changed, signature_wrong
   */
  ask(tx: Queryable, question: LoginQuestion): Promise<"open" | "approved">;
  /** Ends the question, where it is still open. */
  withdraw(tx: Queryable, loginId: string): Promise<void>;
  /** Remembers that the business logged in to an organization, and so shows it the names of its members. */
  noteAcquaintance(
    tx: Queryable,
    met: { business: Address; organizationId: string; now: number },
  ): Promise<void>;
  /** The domain that its record vouches for; null where it has none. */
  findDomain(tx: Queryable, business: Address): Promise<string | null>;
  /** Reads what is kept sealed or packed of a seat. */
  readSeat(seat: SeatRow): MemberStanding;
}

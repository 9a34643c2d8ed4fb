import {
  type Address,
  businessCategory,
  type Hex32,
  ruleOfCategory,
  thresholdOf,
} from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { cancelBallot, castVoteIn, openBallot } from "../ballot/ballots.ts";
import { noteBusinessAcquaintance } from "./acquaintance-store.ts";
import { findBusinessDomain } from "./business-domain.ts";
import { charterOfBytes } from "./business.ts";
import { findBusiness, holdBusiness } from "./business-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { openMemberName } from "./members.ts";

/** A login for a business, about which the other members are asked. */
interface LoginQuestion {
  readonly loginId: string;
  readonly business: Address;
  readonly hash: Hex32;
  readonly clientDomainId: string;
  readonly expiresAt: number;
  readonly actingMember: Address;
  readonly approval: {
    readonly epoch: number;
    readonly validUntil: number;
    readonly signature: string;
  };
}

/** A member's row, as the login slice reads it. */
interface Seat {
  readonly member: Address;
  readonly memberId: string;
  readonly nameSealed: Buffer;
  readonly charter: Buffer;
}

/**
 * The functions that the login slice needs of businesses; passed by `compose.ts`.
 *
 * @param kyb called late, because the login slice is opened before this one
 */
export function createLoginDirectory(kyb: () => KybContext) {
  return {
    /** Opens the ballot, with the acting member's vote. @throws {Problem} as `openBallot` and `castVote` */
    async ask(tx: Queryable, question: LoginQuestion): Promise<"open" | "approved"> {
      const ctx = kyb();
      const { loginId: id, actingMember, approval, ...asked } = question;
      const { hash, clientDomainId, expiresAt } = asked;
      const business = await holdBusiness(tx, asked.business);
      if (business === null) throw new Problem("business_not_found");
      await openBallot(ctx, tx, {
        id,
        kind: "business_login",
        category: businessCategory.login,
        business,
        hash,
        clientDomainId,
        expiresAt,
      });
      const vote = { kind: "approve" as const, ...approval };
      const status = await castVoteIn(ctx, tx, { id, member: actingMember, vote });
      if (status !== "open" && status !== "approved") throw new Problem("ballot_over");
      return status;
    },
    async withdraw(tx: Queryable, loginId: string): Promise<void> {
      await cancelBallot(kyb(), tx, loginId);
    },
    noteAcquaintance: noteBusinessAcquaintance,
    async findDomain(tx: Queryable, address: Address): Promise<string | null> {
      const business = await findBusiness(tx, address);
      return business === null ? null : findBusinessDomain(kyb(), tx, business);
    },
    readSeat(seat: Seat): { name: string; authority: "SOLE" | "JOINT" | "NONE" } {
      const name = openMemberName(kyb(), { id: seat.memberId, nameSealed: seat.nameSealed });
      return { name, authority: authorityOf(seat) };
    },
  };
}

/** Whether the member alone can approve a login (SOLE), together with others (JOINT), or has no vote (NONE). */
function authorityOf({ charter, member }: Seat): "SOLE" | "JOINT" | "NONE" {
  const { rules, members } = charterOfBytes(charter);
  const voters = members.filter(({ isVoting }) => isVoting);
  if (!voters.some(({ address }) => address === member)) return "NONE";
  const needed = thresholdOf(rules[ruleOfCategory(businessCategory.login)], voters.length);
  return needed === 1 ? "SOLE" : "JOINT";
}

import {
  type Address,
  type Approval,
  approvalDigest,
  type BusinessCategory,
  type BusinessRule,
  type Charter,
  declineDigest,
  type Hex,
  type Hex32,
  ruleOfCategory,
  thresholdOf,
} from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import { recoverAddress } from "../../platform/cryptography/secp256k1.ts";
import type { StopReason } from "../business/standing-store.ts";
import type { KybContext } from "../kyb-context.ts";

/** What members vote on. */
export type BallotKind = "data_request" | "signature_request" | "business_login" | "governance";

/** One open or ended question to the voting members of a business. */
export interface Ballot {
  /** The id of what is voted on: a request, a login or a proposal. */
  readonly id: string;
  readonly kind: BallotKind;
  readonly business: Address;
  readonly category: BusinessCategory;
  /** What an approval names; null until the first one fixes it. */
  readonly hash: Hex32 | null;
  /** Who asks; null where the business asks itself. */
  readonly clientDomainId: string | null;
  readonly epoch: number;
  readonly voters: readonly Address[];
  /** How many have to approve. */
  readonly needed: number;
  /** Until when approvals count on chain, Unix seconds; the same for all voters. */
  readonly validUntil: number;
  /** No vote is taken after it, Unix seconds. */
  readonly expiresAt: number;
  readonly status: "open" | "approved" | "refused" | "expired" | "cancelled";
}

/** One member's approval, as the contract takes it. */
export interface MemberApproval {
  readonly member: Address;
  /** 65 bytes. */
  readonly signature: Hex;
}

/** A vote as the member's wallet sends it. */
export type Vote =
  | {
      readonly kind: "approve";
      readonly signature: string;
      readonly epoch: number;
      readonly validUntil: number;
      /** Of a data request: the optional fields that are released; the first approval decides them. */
      readonly optional?: readonly string[];
    }
  | { readonly kind: "reject"; readonly signature: string };

/** What follows from the votes on one kind of ballot, in the transaction of the vote that decides. */
export interface BallotRules {
  /**
   * What voters are shown in addition to who asks and until when, by ballot id. Without personal data of the voters.
   */
  show(ctx: KybContext, ids: readonly string[]): Promise<ReadonlyMap<string, object>>;
  /**
   * Computes the hash that is approved, at the first approval.
   *
   * @throws {Problem} where the approval cannot be for this ballot
   */
  fixHash?(
    ctx: KybContext,
    tx: Queryable,
    first: { readonly ballot: Ballot; readonly optional: readonly string[] },
  ): Promise<Hex32>;
  /** @param approvals exactly as many as needed, in the order of the members' addresses */
  onApproved(
    ctx: KybContext,
    tx: Queryable,
    decided: { readonly ballot: Ballot; readonly approvals: readonly MemberApproval[] },
  ): Promise<void>;
  /** So many members have refused that it cannot be approved any more, or it has expired. */
  onEnded(
    ctx: KybContext,
    tx: Queryable,
    ended: { readonly ballot: Ballot; readonly outcome: "refused" | "expired" },
  ): Promise<void>;
  /** The business cannot decide any more: it was suspended or is no longer verified, or went on in another wallet. */
  onStopped?(
    ctx: KybContext,
    tx: Queryable,
    stopped: { readonly ballot: Ballot; readonly reason: StopReason },
  ): Promise<void>;
  /** Members or rules have changed: what the first approval fixed is open again, and approvals are collected again. */
  onRestarted?(ctx: KybContext, tx: Queryable, ballot: Ballot): Promise<void>;
}

export type BallotKinds = Readonly<Record<BallotKind, BallotRules>>;

/** Who may vote in a category, and how many have to approve. */
export interface Electorate {
  readonly voters: readonly Address[];
  readonly needed: number;
}

/**
 * The electorate of a category by a charter.
 *
 * @param of.rule in place of the charter's own: the stricter of two, or the majority of a removal
 * @param of.without a member that is asked about, and so not asked
 */
export function electorateOf(
  charter: Charter,
  of: {
    category: BusinessCategory;
    rule?: BusinessRule | undefined;
    without?: Address | undefined;
  },
): Electorate {
  const voters = charter.members
    .filter(({ isVoting, address }) => isVoting && address !== of.without)
    .map(({ address }) => address);
  const rule = of.rule ?? charter.rules[ruleOfCategory(of.category)];
  return { voters, needed: thresholdOf(rule, voters.length) };
}

/** Whether, after this many refusals, too few voters are left to approve. */
export function isOutOfReach({ voters, needed }: Electorate, refusals: number): boolean {
  return voters.length - refusals < needed;
}

/** Whether the member signed this approval. */
export function isApprovalOf(member: Address, approval: Approval, signature: string): boolean {
  return recoverAddress(approvalDigest(approval), signature) === member;
}

/** Whether the member signed that it refuses the ballot. @param of.connection where votes go, `<base>/w/votes/<id>` */
export function isRefusalOf(
  member: Address,
  of: { id: string; connection: string },
  signature: string,
): boolean {
  const digest = declineDigest({ request: of.id, connection: of.connection });
  return recoverAddress(digest, signature) === member;
}

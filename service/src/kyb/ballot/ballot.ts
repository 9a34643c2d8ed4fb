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

/** A question to the voting members of a business, open or ended. */
export interface Ballot {
  /** The id of what is voted on: a request, a login or a proposal. */
  readonly id: string;
  readonly kind: BallotKind;
  readonly business: Address;
  readonly category: BusinessCategory;
  /** The hash that approvals sign; null until the first approval fixes it. */
  readonly hash: Hex32 | null;
  /** The requester; null if the members ask themselves. */
  readonly clientDomainId: string | null;
  readonly epoch: number;
  readonly voters: readonly Address[];
  /** How many have to approve. */
  readonly needed: number;
  /** Until when the contract accepts the approvals, Unix seconds; the same for all voters. */
  readonly validUntil: number;
  /** The last second at which votes are accepted, Unix seconds. */
  readonly expiresAt: number;
  readonly status: "open" | "approved" | "refused" | "expired" | "cancelled";
}

/** One member's approval, in the contract's form. */
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

/** What a kind of ballot shows to voters, and what follows from the votes, in the transaction of the deciding vote. */
export interface BallotRules {
  /** What the inbox shows beside requester and times, by ballot id. No personal data of voters. */
  show(ctx: KybContext, ids: readonly string[]): Promise<ReadonlyMap<string, object>>;
  /**
   * Computes the hash to approve, at the first approval. Absent for kinds whose hash is known from the start.
   *
   * @throws {Problem} if the approval does not fit the ballot
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
  /** It cannot be approved any more, because too many members have refused, or it has expired. */
  onEnded(
    ctx: KybContext,
    tx: Queryable,
    ended: { readonly ballot: Ballot; readonly outcome: "refused" | "expired" },
  ): Promise<void>;
  /** The business cannot decide any more: it was suspended, is no longer verified, or has moved to another wallet. */
  onStopped?(
    ctx: KybContext,
    tx: Queryable,
    stopped: { readonly ballot: Ballot; readonly reason: StopReason },
  ): Promise<void>;
  /** Members or rules have changed: all approvals are void, with what the first one fixed, and are collected again. */
  onRestarted?(ctx: KybContext, tx: Queryable, ballot: Ballot): Promise<void>;
}

export type BallotKinds = Readonly<Record<BallotKind, BallotRules>>;

/** Who may vote in a category, and how many have to approve. */
export interface Electorate {
  readonly voters: readonly Address[];
  readonly needed: number;
}

/**
 * The electorate of a category according to a charter.
 *
 * @param of.rule overrides the charter's rule: for a changed charter the stricter of both, for a removal the majority
 * @param of.without the member whose removal is voted on, who has no vote
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

/** Whether the member signed a refusal of the ballot. @param of.connection `<base>/w/votes/<id>` */
export function isRefusalOf(
  member: Address,
  of: { id: string; connection: string },
  signature: string,
): boolean {
  const digest = declineDigest({ request: of.id, connection: of.connection });
  return recoverAddress(digest, signature) === member;
}

import {
  type Address,
  type BusinessRule,
  type Hex,
  hexOfBytes,
  type Hex32,
  parseSignature,
} from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import { purgeInBatches } from "../../platform/database/purge.ts";
import { workInTransactions } from "../../platform/database/work-in-batches.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import { Problem } from "../../platform/http/problems.ts";
import {
  type Ballot,
  type BallotKind,
  electorateOf,
  isApprovalOf,
  isOutOfReach,
  isRefusalOf,
  type MemberApproval,
  type Vote,
} from "./ballot.ts";
import * as store from "./ballot-store.ts";
import { type Business, isGoodStanding } from "../business/business.ts";
import { findBusiness } from "../business/business-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { noteAnswered } from "../business/removal-store.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";

/** A ballot to open. */
export interface NewBallot extends Pick<
  Ballot,
  "id" | "kind" | "category" | "hash" | "clientDomainId" | "expiresAt"
> {
  /** Locked by the caller, so that it cannot change before the ballot is stored. */
  readonly business: Business;
  /** Overrides the business's own rule for the category. */
  readonly rule?: BusinessRule;
  /** The member whose removal is voted on, who has no vote. */
  readonly without?: Address;
}

/** The contract accepts approvals for this long after the last possible vote (decisions section 6, Approval). */
export const chainGraceSeconds = 3600;
const retentionSeconds = 30 * 86_400;

/** The URL to which a wallet sends its vote, and which a signed refusal contains. */
export function connectionOfVotes(ctx: Pick<KybContext, "config">, id: string): string {
  return `${ctx.config.baseUrl}/w/votes/${id}`;
}

/**
 * Opens a ballot for the voting members of a business, in the caller's transaction.
 *
 * @throws {Problem} business_not_found
 */
export async function openBallot(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  given: NewBallot,
): Promise<Ballot> {
  const { id, kind, business, category, hash, clientDomainId, expiresAt, rule, without } = given;
  if (!isOpenTo(business, kind)) throw new Problem("business_not_found");
  const ballot = {
    id,
    kind,
    business: business.address,
    category,
    hash,
    clientDomainId,
    epoch: business.epoch,
    ...electorateOf(business.charter, { category, rule, without }),
    validUntil: expiresAt + chainGraceSeconds,
    expiresAt,
  };
  await store.insertBallot(tx, ballot, ctx.clock.now());
  return { ...ballot, status: "open" };
}

/** A member's vote on a ballot. */
export interface CastVote {
  readonly id: string;
  readonly member: Address;
  readonly vote: Vote;
}

/**
 * Casts a vote, in a transaction of its own, with everything that follows if it decides. Repeating a vote changes
 * nothing.
 *
 * @returns the status of the ballot afterwards
 * @throws {Problem} ballot_not_found, ballot_over, ballot_changed, already_voted, signature_wrong, and what the kind's
 * rules throw
 */
export async function castVote(ctx: KybContext, cast: CastVote): Promise<Ballot["status"]> {
  return ctx.db.transaction(async (tx) => castVoteIn(ctx, tx, cast));
}

/** The same in the caller's transaction. */
export async function castVoteIn(
  ctx: KybContext,
  tx: Queryable,
  { id, member, vote }: CastVote,
): Promise<Ballot["status"]> {
  const locked = await store.lockBallot(tx, id, { voter: member });
  if (locked === null) throw new Problem("ballot_not_found");
  const { ballot, business } = locked;
  const { epoch } = ballot;
  const earlier = await store.findVote(tx, { ballotId: id, epoch, member });
  if (earlier === vote.kind) return ballot.status;
  if (earlier !== null) throw new Problem("already_voted");
  if (ballot.status !== "open" || ballot.expiresAt < ctx.clock.now())
    throw new Problem("ballot_over");
  if (!isOpenTo(business, ballot.kind)) throw new Problem("ballot_over");
  const hash =
    vote.kind === "approve" ? await checkApproval(ctx, tx, { ballot, member, vote }) : null;
  if (vote.kind === "reject") checkRefusal(ctx, { ballot, member, signature: vote.signature });
  if (hash !== null && ballot.hash === null) await store.fixHash(tx, id, hash);
  const votes = await store.insertVote(tx, {
    ballotId: id,
    epoch,
    member,
    kind: vote.kind,
    signature: vote.signature.toLowerCase() as Hex,
    now: ctx.clock.now(),
  });
  if (votes === null) throw new Problem("already_voted");
  // A member who votes is not lost, so this answers a removal under way (decisions section 6, Lost member).
  const answer = { business: ballot.business, member, by: "vote", now: ctx.clock.now() } as const;
  await noteAnswered(tx, answer);
  return decide(ctx, tx, { ballot: { ...ballot, hash: hash ?? ballot.hash }, votes });
}

/**
 * Whether votes of this kind are possible. Requests of others need a business in good standing. Logins and governance
 * are possible while it is not verified, and governance even after it has moved (see `stopBusiness`).
 */
function isOpenTo(business: Business, kind: BallotKind): boolean {
  if (kind === "data_request" || kind === "signature_request") return isGoodStanding(business);
  return business.status === "active" || (kind === "governance" && business.status === "moved");
}

/** @returns the approved hash */
async function checkApproval(
  ctx: KybContext,
  tx: Queryable,
  given: { ballot: Ballot; member: Address; vote: Extract<Vote, { kind: "approve" }> },
): Promise<Hex32> {
  const { ballot, member, vote } = given;
  if (vote.epoch !== ballot.epoch || vote.validUntil !== ballot.validUntil)
    throw new Problem("ballot_changed");
  const hash = await hashOf(ctx, tx, { ballot, optional: vote.optional ?? [] });
  const { business, category, epoch, validUntil } = ballot;
  const approval = { chainId: ctx.chain.chainId, business, category, hash, epoch, validUntil };
  if (!isApprovalOf(member, approval, vote.signature)) throw wrongApproval(ballot, vote.signature);
  return hash;
}

/** What may have changed since the wallet showed it, although the epoch is the same. */
const doubts: { readonly [each in BallotKind]?: string } = {
  data_request: "another member may have decided which optional fields go",
  governance: "another act of the members may have come first, and this one has another number now",
};

function wrongApproval({ kind, hash }: Ballot, signature: string): Problem {
  const doubt = doubts[kind];
  if (doubt === undefined || hash === null || parseSignature(signature) === null)
    return signatureWrong(signature);
  return new Problem("signature_wrong", {
    message: `the signature is over something else than this: ${doubt}; look at it again`,
  });
}

async function hashOf(
  ctx: KybContext,
  tx: Queryable,
  first: { ballot: Ballot; optional: readonly string[] },
): Promise<Hex32> {
  const { ballot } = first;
  if (ballot.hash !== null) return ballot.hash;
  const fixed = await ctx.ballotKinds[ballot.kind].fixHash?.(ctx, tx, first);
  if (fixed === undefined) throw new Error(`a ballot on ${ballot.kind} has nothing to approve`);
  return fixed;
}

function checkRefusal(
  ctx: KybContext,
  { ballot, member, signature }: { ballot: Ballot; member: Address; signature: string },
): void {
  const connection = connectionOfVotes(ctx, ballot.id);
  if (!isRefusalOf(member, { id: ballot.id, connection }, signature))
    throw signatureWrong(signature);
}

async function decide(
  ctx: KybContext,
  tx: Queryable,
  { ballot, votes }: { ballot: Ballot; votes: { approvals: MemberApproval[]; refusals: number } },
): Promise<Ballot["status"]> {
  const rules = ctx.ballotKinds[ballot.kind];
  const now = ctx.clock.now();
  if (votes.approvals.length >= ballot.needed) {
    await store.endBallot(tx, { id: ballot.id, status: "approved", now });
    await rules.onApproved(ctx, tx, {
      ballot: { ...ballot, status: "approved" },
      approvals: votes.approvals,
    });
    return "approved";
  }
  if (!isOutOfReach(ballot, votes.refusals)) return "open";
  await store.endBallot(tx, { id: ballot.id, status: "refused", now });
  await rules.onEnded(ctx, tx, { ballot: { ...ballot, status: "refused" }, outcome: "refused" });
  return "refused";
}

/**
 * Ends an open ballot because its question was cancelled; one that has ended stays as it is. Waits for its lock, since
 * it may just be reopened: members would be asked about a cancelled request.
 */
export async function cancelBallot(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  id: string,
): Promise<void> {
  await store.lockBallot(tx, id);
  await store.endBallot(tx, { id, status: "cancelled", now: ctx.clock.now() });
}

/**
 * Starts every open ballot of a business over after its members or rules have changed. Call it in the transaction of
 * that change, after the business was locked and its new charter stored.
 */
export async function restartBallots(
  ctx: KybContext,
  tx: Queryable,
  address: Address,
): Promise<void> {
  const business = await findBusiness(tx, address);
  if (business === null) throw new Problem("business_not_found");
  for (const ballot of await store.lockOpenBallots(tx, address))
    await restartBallot(ctx, tx, { ballot, business });
}

/**
 * Reopens an approved ballot whose approvals became void, because members or rules changed before they were used. The
 * caller has locked the business and the request. So the ballot is only locked if there was such a change: a
 * cancellation locks ballot and request in the other order, and could deadlock with this.
 *
 * @returns false if there was no such change
 */
export async function reopenBallot(ctx: KybContext, tx: Queryable, id: string): Promise<boolean> {
  if (!(await store.isOfEarlierEpoch(tx, id))) return false;
  const locked = await store.lockBallot(tx, id);
  if (locked?.ballot.status !== "approved" || locked.business.epoch === locked.ballot.epoch)
    return false;
  await store.reopenBallot(tx, id);
  await restartBallot(ctx, tx, locked);
  return true;
}

/** Starts the ballot over with the present electorate. */
async function restartBallot(
  ctx: KybContext,
  tx: Queryable,
  { ballot, business }: { ballot: Ballot; business: Business },
): Promise<void> {
  const rules = ctx.ballotKinds[ballot.kind];
  const { voters, needed } = electorateOf(business.charter, { category: ballot.category });
  const hash = rules.fixHash === undefined ? ballot.hash : null;
  const begun = { id: ballot.id, epoch: business.epoch, voters, needed, hash };
  await store.restartBallot(tx, begun);
  await rules.onRestarted?.(ctx, tx, { ...ballot, ...begun });
}

/**
 * Ends expired ballots, each in a transaction of its own, because that may release held money, which locks the ledger
 * of the organization: transactions that lock several ledgers could deadlock, and would delay all new requests.
 */
export async function expireBallots(ctx: KybContext): Promise<void> {
  await workInTransactions(ctx.db, 1, async (tx, limit) => {
    const due = await store.lockDueBallots(tx, ctx.clock.now(), limit);
    await expireLocked(ctx, tx, due);
    return due.length;
  });
}

/**
 * Ends those of the given ballots that have expired but that {@link expireBallots} has not reached yet, in the caller's
 * transaction. Waits for other processes that do so, so afterwards none of them is open and expired. To avoid
 * deadlocks, the caller has locked the business, or has locked nothing and passes only one ballot.
 */
export async function expireAmong(
  ctx: KybContext,
  tx: Queryable,
  ids: readonly string[],
): Promise<void> {
  if (ids.length === 0) return;
  await expireLocked(ctx, tx, await store.lockDueAmong(tx, ids, ctx.clock.now()));
}

/** Ends the expired ballots of a client domain, so that a list shows none as open; see {@link expireBallots}. */
export async function expireBallotsOf(ctx: KybContext, clientDomainId: string): Promise<void> {
  for (const { id } of await store.listDueOf(ctx.db, clientDomainId, ctx.clock.now()))
    await ctx.db.transaction(async (tx) => expireAmong(ctx, tx, [id]));
}

async function expireLocked(ctx: KybContext, tx: Queryable, due: readonly Ballot[]): Promise<void> {
  const now = ctx.clock.now();
  for (const ballot of due) {
    await store.endBallot(tx, { id: ballot.id, status: "expired", now });
    const ended = {
      ballot: { ...ballot, status: "expired" as const },
      outcome: "expired" as const,
    };
    await ctx.ballotKinds[ballot.kind].onEnded(ctx, tx, ended);
  }
}

/** Deletes ballots 30 days after they ended (decisions section 8, Retention: logins and requests). */
export async function purgeBallots(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - retentionSeconds;
  await purgeInBatches(async (limit) => store.deleteBallots(ctx.db, before, limit));
}

/** Joins approvals to the contract's form. They have to be in the order of the members' addresses. */
export function joinApprovals(approvals: readonly MemberApproval[]): Hex {
  const bytes = approvals.map(({ signature }) => bufferOfHex(signature));
  return hexOfBytes(Buffer.concat(bytes));
}

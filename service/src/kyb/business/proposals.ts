// Proposals of members about their own business, and their retraction (decisions section 6).
import { isDeepStrictEqual } from "node:util";
import {
  governanceFunctions,
  type Address,
  businessCategory,
  type CharterMember,
  governanceActs,
  governanceHash,
} from "@svc/protocol";
import { NodeAway, RpcError } from "../../chain/index.ts";
import { ulid } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { endBallot, lockBallot } from "../ballot/ballot-store.ts";
import { openBallot } from "../ballot/ballots.ts";
import { type Business, mayGoOnIn } from "./business.ts";
import { findBusiness, holdBusiness } from "./business-store.ts";
import { parseMemberAddress } from "./charter-request.ts";
import * as store from "./proposal-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { refuseBusinesses, refuseContracts, requireMember } from "./members.ts";
import {
  parseHash,
  planCharter,
  type Planned,
  type Proposal,
  type ProposalRequest,
} from "./proposal.ts";
import { protectedUntil, standsInTheWayOf } from "./removal.ts";
import { listRemovals, type Removal } from "./removal-store.ts";
import { keptNames, namesOf, sealNames } from "./shown-proposal.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

/** How long members have to decide. */
const votingSeconds = 7 * 86_400;
/**
 * The most undecided proposals of one business, and of one member of it. A member who has none may always make one:
 * otherwise four members could keep the others from ever proposing anything, even their removal.
 */
const pendingMax = { all: 20, own: 5 };

/** The answer to a proposer. */
export interface Proposed {
  readonly id: string;
  readonly expiresAt: number;
  readonly nonce: number;
  readonly needed: number;
  /** False if this member had made the same proposal before. */
  readonly isNew: boolean;
}

/**
 * Puts an act of governance to the vote of the voting members, including the proposer. While that is open, the same
 * call of the same member returns the same proposal, for a wallet that did not get the answer.
 *
 * @throws {Problem} business_not_found, not_a_member, invalid_request, too_many, removal_refused, not_signed,
 * chain_unavailable
 */
export async function propose(
  ctx: KybContext,
  proposer: Address,
  given: { business: Address; request: ProposalRequest },
): Promise<Proposed> {
  const { request } = given;
  const seen = await findBusiness(ctx.db, given.business);
  checkMember(seen, proposer, request);
  await checkOutside(ctx, seen, request).catch(throwUnavailable);
  return ctx.db.transaction(async (tx) => {
    if (request.operation === "moveTo") await store.lockMoves(tx);
    const business = await holdBusiness(tx, given.business);
    checkMember(business, proposer, request);
    const pending = await store.countPending(tx, { business: business.address, proposer });
    const planned = await plan(ctx, tx, { business, proposer, request });
    const earlier = await findSame(ctx, tx, { business, proposer, planned });
    if (earlier !== null) return earlier;
    const isFull = pending.all >= pendingMax.all && pending.own > 0;
    if (isFull || pending.own >= pendingMax.own) throw new Problem("too_many");
    const { operation, act, names, member, rule } = planned;
    const id = ulid(ctx.clock, ctx.random);
    const { address, nonce } = business;
    const expiresAt = ctx.clock.now() + votingSeconds;
    const ballot = await openBallot(ctx, tx, {
      id,
      kind: "governance",
      business,
      category: businessCategory.governance,
      hash: governanceHash({ ...act, nonce }),
      clientDomainId: null,
      expiresAt,
      ...(rule === undefined ? {} : { rule }),
      ...(member === null ? {} : { without: member }),
    });
    await store.insertProposal(tx, {
      id,
      business: address,
      operation,
      arguments: act.arguments,
      namesSealed: names === null ? null : sealNames(ctx, id, names),
      member,
      proposer,
      nonce,
      createdAt: ctx.clock.now(),
    });
    const details = { operation: act.operation, proposal: id };
    const entry = { actor: proposer, action: "business.propose", subject: address, details };
    await ctx.audit.record(tx, entry);
    return { id, expiresAt, nonce, needed: ballot.needed, isNew: true };
  });
}

/** An open proposal of this member for the same act; for a changed charter also with the same names. */
async function findSame(
  ctx: KybContext,
  tx: Queryable,
  given: { business: Business; proposer: Address; planned: Planned },
): Promise<Proposed | null> {
  const { business, proposer, planned } = given;
  const { operation, act, names } = planned;
  const of = { business: business.address, proposer, operation, arguments: act.arguments };
  const open = await store.listSame(tx, { ...of, now: ctx.clock.now() });
  const same = open.find((each) => isDeepStrictEqual(namesOf(ctx, each), keptNames(names ?? [])));
  if (same === undefined) return null;
  const { id, expiresAt, nonce, needed } = same;
  return { id, expiresAt, nonce, needed, isNew: false };
}

/**
 * Retracts an open proposal, at the request of the member who made it. Repeating the call changes nothing.
 *
 * @throws {Problem} business_not_found; ballot_not_found, also for a proposal of somebody else; ballot_over
 */
export async function retractProposal(
  ctx: KybContext,
  proposer: Address,
  given: { business: Address; id: string },
): Promise<void> {
  const { business, id } = given;
  await ctx.db.transaction(async (tx) => {
    // First without a lock: somebody else who had to wait for one would learn that members are voting.
    await getOwnProposal(tx, proposer, given);
    const locked = await lockBallot(tx, id);
    const proposal = await getOwnProposal(tx, proposer, given);
    if (locked === null) throw new Problem("ballot_not_found");
    if (proposal.status === "retracted") return;
    if (locked.ballot.status !== "open") throw new Problem("ballot_over");
    const now = ctx.clock.now();
    await endBallot(tx, { id, status: "cancelled", now });
    await store.setProposalStatus(tx, [id], { status: "retracted", now });
    const details = { operation: governanceFunctions[proposal.operation], proposal: id };
    const entry = { actor: proposer, action: "business.retract", subject: business, details };
    await ctx.audit.record(tx, entry);
  });
}

/** @throws {Problem} business_not_found, ballot_not_found */
async function getOwnProposal(
  tx: Queryable,
  proposer: Address,
  { business, id }: { business: Address; id: string },
): Promise<Proposal> {
  await requireMember(tx, { business, member: proposer });
  const [proposal] = await store.listProposals(tx, [id]);
  if (proposal?.business !== business || proposal.proposer !== proposer)
    throw new Problem("ballot_not_found");
  return proposal;
}

/**
 * Checks that the identity is a voting member of an active business. After a move, members may still withdraw
 * signatures of the old wallet, as its contract allows.
 *
 * @throws {Problem} business_not_found, also for anybody but a member, so that strangers do not learn which businesses
 * there are; not_a_member for a member without a vote
 */
function checkMember(
  business: Business | null,
  member: Address,
  { operation }: ProposalRequest,
): asserts business is Business {
  const found = business?.charter.members.find(({ address }) => address === member);
  const isOpen =
    business?.status === "active" || (business?.status === "moved" && operation === "withdraw");
  if (!isOpen || found === undefined) throw new Problem("business_not_found");
  if (!found.isVoting) throw new Problem("not_a_member");
}

/** Checks new members, and what only the chain knows, so that members do not vote on something impossible. */
async function checkOutside(
  ctx: KybContext,
  { address, charter }: Business,
  request: ProposalRequest,
): Promise<void> {
  const calls = await loadWalletCalls();
  if (request.operation === "changeCharter") {
    const members = planCharter(charter, request).names ?? [];
    await refuseBusinesses(ctx.db, newTo(charter.members, members));
    await refuseContracts(ctx, newTo(charter.members.filter(isVoter), members.filter(isVoter)));
  } else if (request.operation === "withdraw") {
    if (!(await calls.isRecorded(ctx, address, parseHash(request.hash))))
      throw new Problem("not_signed");
  } else if (request.operation === "startRemoval") {
    const member = parseMemberAddress("member", request.member);
    const until = await calls.protectedUntil(ctx, address, member);
    if (until > ctx.clock.now()) throw answeredLately(until);
  }
}

function throwUnavailable(error: unknown): never {
  const isOfNode = error instanceof NodeAway || error instanceof RpcError;
  throw isOfNode ? new Problem("chain_unavailable") : error;
}

const isVoter = ({ isVoting }: CharterMember): boolean => isVoting;

function newTo(
  known: readonly CharterMember[],
  members: readonly CharterMember[],
): CharterMember[] {
  const addresses = new Set(known.map(({ address }) => address));
  return members.filter(({ address }) => !addresses.has(address));
}

async function plan(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  {
    business,
    proposer,
    request,
  }: { business: Business; proposer: Address; request: ProposalRequest },
): Promise<Planned> {
  const { operation } = request;
  if (operation === "changeCharter") return planCharter(business.charter, request);
  if (operation === "withdraw") {
    const act = governanceActs.withdraw(parseHash(request.hash));
    return { operation, act, names: null, member: null };
  }
  if (operation === "startRemoval") {
    const { member: text } = request;
    return planRemoval(ctx, tx, { business, proposer, text });
  }
  return planMove(tx, business, request.successor);
}

async function planMove(tx: Queryable, business: Business, text: string): Promise<Planned> {
  const successor = parseMemberAddress("successor", text);
  const next = await findBusiness(tx, successor);
  if (!mayGoOnIn(next, business))
    throw invalidRequest("successor is another active business of the same environment");
  if (await store.mayMoveOnTo(tx, successor, business.address))
    throw invalidRequest("successor may move here itself: none would be left");
  const act = governanceActs.moveTo(successor);
  return { operation: "moveTo", act, names: null, member: null };
}

function underWay(open: Removal, member: Address): Problem {
  const until = open.member === member ? protectedUntil(open) : null;
  if (until !== null) return answeredLately(until);
  return new Problem("removal_refused", { message: "removal_refused: one removal at a time" });
}

const answeredLately = (until: number): Problem =>
  new Problem("removal_refused", {
    message: "removal_refused: the member answered less than 90 days ago",
    details: { protectedUntil: until },
  });

async function planRemoval(
  { clock }: Pick<KybContext, "clock">,
  tx: Queryable,
  { business, proposer, text }: { business: Business; proposer: Address; text: string },
): Promise<Planned> {
  const { address, charter } = business;
  const member = parseMemberAddress("member", text);
  if (member === proposer)
    throw new Problem("removal_refused", {
      message: "removal_refused: the others remove a member that is lost, never the member itself",
    });
  if (charter.members.every((each) => each.address !== member))
    throw new Problem("removal_refused", { message: "removal_refused: no member" });
  if (charter.members.filter(isVoter).length < 2)
    throw new Problem("removal_refused", { message: "removal_refused: nobody else has a vote" });
  const [open] = await listRemovals(tx, [address]);
  if (open !== undefined && standsInTheWayOf(member, { open, now: clock.now() }))
    throw underWay(open, member);
  const act = governanceActs.startRemoval(member);
  return { operation: "startRemoval", act, names: null, member, rule: "MAJORITY" };
}

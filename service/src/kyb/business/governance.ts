// What members decide about their own business (decisions section 6): proposal, ballot, transaction, mirror.
import {
  type Address,
  businessCategory,
  encodeCharter,
  governanceActs,
  governanceHash,
} from "@svc/protocol";
import {
  enqueueTransaction,
  type FinalHandlers,
  findTransactionStatus,
} from "../../chain/index.ts";
import { ulid } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/db.ts";
import { invalidRequest, Problem } from "../../platform/problems.ts";
import { type Ballot, type BallotRules, electorateOf } from "../ballot/ballot.ts";
import {
  endBallot,
  lockBallot,
  lockOpenBallots,
  reopenBallot,
  restartBallot,
} from "../ballot/ballot-store.ts";
import { joinApprovals, openBallot } from "../ballot/ballots.ts";
import type { Business } from "./business.ts";
import { findBusiness, holdBusiness, listBusinessesAt } from "./business-store.ts";
import { parseMemberAddress } from "./charter-request.ts";
import * as store from "./governance-store.ts";
import type { KybContext } from "../kyb-context.ts";
import {
  actOf,
  operations,
  parseHash,
  planCharter,
  type Planned,
  type Proposal,
  type ProposalRequest,
  ruleOf,
} from "./proposal.ts";
import { isRenewable, protectedUntil, renewRemoval } from "./removal.ts";
import { listRemovals, type Removal, requestLook } from "./roster-store.ts";
import { sealNames, showProposals } from "./shown-proposal.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

/** Kind of the transaction that does what members decided. */
const governKind = "business.govern";
/** Members have so long to decide. */
const votingSeconds = 7 * 86_400;
/** Proposals that are not decided yet, of one business and of one member of it. */
const pendingMax = { all: 20, own: 5 };
const retentionSeconds = 30 * 86_400;

/**
 * Puts an act of governance to the vote of the voting members, the proposer among them.
 *
 * @throws {Problem} business_not_found, not_a_member, invalid_request, too_many, removal_refused, not_signed
 */
export async function propose(
  ctx: KybContext,
  proposer: Address,
  given: { business: Address; request: ProposalRequest },
): Promise<{ id: string; expiresAt: number; nonce: number; needed: number }> {
  const { request } = given;
  const seen = await findBusiness(ctx.db, given.business);
  checkMember(seen, proposer, request);
  await checkOnChain(ctx, seen, request);
  return ctx.db.transaction(async (tx) => {
    const business = await holdBusiness(tx, given.business);
    checkMember(business, proposer, request);
    const pending = await store.countPending(tx, { business: business.address, proposer });
    if (pending.all >= pendingMax.all || pending.own >= pendingMax.own)
      throw new Problem("too_many");
    const planned = await plan(ctx, tx, { business, request });
    const { operation, act, names, member, rule } = planned;
    const id = ulid(ctx.clock, ctx.random);
    const { address, nonce } = business;
    const expiresAt = ctx.clock.now() + votingSeconds;
    const ballot = await openBallot(ctx, tx, {
      id,
      kind: "governance",
      business: address,
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
    return { id, expiresAt, nonce, needed: ballot.needed };
  });
}

/**
 * Takes a proposal back, by whoever made it: nobody is asked any more. Again for one that was taken back changes nothing.
 *
 * @throws {Problem} business_not_found, ballot_not_found also for one of somebody else, ballot_over
 */
export async function retractProposal(
  ctx: KybContext,
  proposer: Address,
  given: { business: Address; id: string },
): Promise<void> {
  const { id } = given;
  await ctx.db.transaction(async (tx) => {
    const ballot = await lockBallot(tx, id);
    const [proposal] = await store.listProposals(tx, [id]);
    const business = await findBusiness(tx, given.business);
    if (!business?.charter.members.some(({ address }) => address === proposer))
      throw new Problem("business_not_found");
    const { address } = business;
    if (ballot === null || proposal?.business !== address || proposal.proposer !== proposer)
      throw new Problem("ballot_not_found");
    if (proposal.status === "retracted") return;
    if (ballot.status !== "open") throw new Problem("ballot_over");
    const now = ctx.clock.now();
    await endBallot(tx, { id, status: "cancelled", now });
    await store.setProposalStatus(tx, [id], { status: "retracted", now });
    const details = { operation: operations[proposal.operation], proposal: id };
    const entry = { actor: proposer, action: "business.retract", subject: address, details };
    await ctx.audit.record(tx, entry);
  });
}

/**
 * Members take back what they signed with a wallet that they left as well, as its contract does.
 *
 * @throws {Problem} business_not_found also where the identity is no member: whose businesses there are is not told
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

/** What only the chain knows, before anybody is asked in vain. */
async function checkOnChain(
  ctx: KybContext,
  { address }: Business,
  request: ProposalRequest,
): Promise<void> {
  const calls = await loadWalletCalls();
  if (request.operation === "withdraw") {
    if (!(await calls.isRecorded(ctx, address, parseHash(request.hash))))
      throw new Problem("not_signed");
  } else if (request.operation === "startRemoval") {
    const member = parseMemberAddress(request.member);
    const until = await calls.protectedUntil(ctx, address, member);
    if (until > ctx.clock.now()) throw answeredLately(until);
  }
}

async function plan(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  { business, request }: { business: Business; request: ProposalRequest },
): Promise<Planned> {
  const { operation } = request;
  const nobody = { names: null, member: null };
  if (operation === "changeCharter") {
    const planned = planCharter(business.charter, request);
    await refuseBusinesses(tx, business, planned.names ?? []);
    return planned;
  }
  if (operation === "withdraw")
    return { operation, act: governanceActs.withdraw(parseHash(request.hash)), ...nobody };
  if (operation === "startRemoval") return planRemoval(ctx, tx, { business, text: request.member });
  const successor = parseMemberAddress(request.successor);
  const next = await findBusiness(tx, successor);
  const isGood = next?.status === "active" && next.environment === business.environment;
  if (!isGood || successor === business.address)
    throw invalidRequest("successor is another active business of the same environment");
  if (await store.isMoveProposed(tx, next.address, business.address))
    throw invalidRequest("successor is asked to move here itself: neither would be left");
  return { operation, act: governanceActs.moveTo(successor), ...nobody };
}

/** Who is added signs nothing before: where all have to approve, nobody could any more. @throws {Problem} invalid_request */
async function refuseBusinesses(
  tx: Queryable,
  { charter }: Business,
  members: readonly { readonly address: Address }[],
): Promise<void> {
  const known = new Set(charter.members.map(({ address }) => address));
  const added = members.map(({ address }) => address).filter((address) => !known.has(address));
  const [keyless] = await listBusinessesAt(tx, added);
  if (keyless !== undefined)
    throw invalidRequest(
      `${keyless.address} is a business: it has no key, and is no member of one`,
    );
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
  { business, text }: { business: Business; text: string },
): Promise<Planned> {
  const { address, charter } = business;
  const member = parseMemberAddress(text);
  if (charter.members.every((each) => each.address !== member))
    throw new Problem("removal_refused", { message: "removal_refused: no member" });
  if (charter.members.filter(({ isVoting }) => isVoting).length < 2)
    throw new Problem("removal_refused", { message: "removal_refused: nobody else has a vote" });
  const [open] = await listRemovals(tx, [address]);
  const isAgain = open?.member === member && isRenewable(open, clock.now());
  if (open !== undefined && !isAgain) throw underWay(open, member);
  const act = governanceActs.startRemoval(member);
  return { operation: "startRemoval", act, names: null, member, rule: "MAJORITY" };
}

/** A removal that is still open on the chain, where its member answered it by votes alone, goes on here. */
async function decideRemovalAgain(
  ctx: KybContext,
  tx: Queryable,
  { id, business, operation, member }: Proposal,
): Promise<boolean> {
  if (operation !== "startRemoval" || member === null) return false;
  if (!(await renewRemoval(ctx, tx, { business, member }))) return false;
  await store.setProposalStatus(tx, [id], { status: "executed", now: ctx.clock.now() });
  const entry = { actor: "system", action: "business.govern.executed", subject: business };
  const details = { operation: operations[operation], proposal: id };
  await ctx.audit.record(tx, { ...entry, details });
  return true;
}

/** What follows from votes on governance. */
export const governanceRules: BallotRules = {
  show: async (ctx, ids) => {
    const proposals = await store.listProposals(ctx.db, ids);
    return showProposals(ctx, proposals);
  },
  onApproved: async (ctx, tx, { ballot, approvals }) => {
    const [proposal] = await store.listProposals(tx, [ballot.id]);
    if (proposal === undefined) throw new Error(`nothing is proposed by ${ballot.id}`);
    if (await decideRemovalAgain(ctx, tx, proposal)) return;
    const calls = await loadWalletCalls();
    const signatures = joinApprovals(approvals);
    const relayed = { validUntil: ballot.validUntil, signatures };
    const data = calls.govern(proposal.operation, proposal.arguments, relayed);
    const { id, business: to, nonce } = proposal;
    // A subject has one transaction for ever, and what is collected anew needs another. Processes of the version before
    // know the first by its proposal alone, and may still be who sees it end.
    const isFirst = (await findTransactionStatus(tx, governKind, id)) === null;
    const subjectId = isFirst ? id : `${id}.${nonce}`;
    await enqueueTransaction(ctx, tx, { kind: governKind, subjectId, to, data });
    await store.setProposalStatus(tx, [id], { status: "relaying", now: ctx.clock.now() });
  },
  onEnded: async (ctx, tx, { ballot, outcome: status }) =>
    store.setProposalStatus(tx, [ballot.id], { status, now: ctx.clock.now() }),
  onStopped: async (ctx, tx, { ballot }) =>
    store.setProposalStatus(tx, [ballot.id], { status: "failed", now: ctx.clock.now() }),
  onRestarted: async (ctx, tx, ballot) => {
    const business = await findBusiness(tx, ballot.business);
    if (business !== null) await restart(ctx, tx, { business, ballot });
  },
};

/** Collects anew on what is proposed, where an act of governance came first that left members and rules as they were. */
export async function restartProposals(
  ctx: KybContext,
  tx: Queryable,
  business: Business,
): Promise<void> {
  for (const ballot of await lockOpenBallots(tx, business.address))
    if (ballot.kind === "governance") await restart(ctx, tx, { business, ballot });
}

/** Of proposals to take back a signature that may be done: whether the wallet no longer has it. */
export type Withdrawals = ReadonlyMap<string, boolean>;

/** @throws when the chain's node cannot be asked */
export async function findWithdrawals(
  ctx: KybContext,
  of: { business: Address; block: number; nonce: number },
): Promise<Withdrawals> {
  const calls = await loadWalletCalls();
  const withdrawals = await store.listDoubtfulWithdrawals(ctx.db, of);
  return new Map(
    await Promise.all(
      withdrawals.map(async ({ id, arguments: args }) => {
        const isRecorded = await calls.isRecorded(ctx, of.business, args);
        return [id, !isRecorded] as const;
      }),
    ),
  );
}

/**
 * Says what becomes of acts that members approved and the chain refused. Somebody else may have handed their approvals
 * over: then it is done. Where another act came first, their approvals named a number that it took: the members are
 * asked again. Else it cannot be done. Nobody is asked any more to take back what is taken back.
 *
 * @param given.business as the chain has it in `block`
 * @param given.withdrawals as found before: one that is missing is left to the next look
 */
export async function mendProposals(
  ctx: KybContext,
  tx: Queryable,
  given: { business: Business; block: number; withdrawals: Withdrawals },
): Promise<void> {
  const { business, block, withdrawals } = given;
  const { address, nonce } = business;
  for (const proposal of await store.listRefusedProposals(tx, { business: address, block })) {
    const { id } = proposal;
    if (proposal.operation === "withdraw" && !withdrawals.has(id)) continue;
    const ballot = await lockBallot(tx, id);
    const isTaken = ballot !== null && proposal.nonce !== nonce;
    const isDone = isTaken && (await isExecuted(ctx, tx, { ...given, proposal }));
    if (!isTaken || isDone) {
      const status = isDone ? "executed" : "failed";
      await store.setProposalStatus(tx, [id], { status, now: ctx.clock.now() });
      continue;
    }
    await reopenBallot(tx, id);
    await restart(ctx, tx, { business, ballot });
  }
  for (const [id, isDone] of withdrawals) {
    const ballot = isDone ? await lockBallot(tx, id) : null;
    if (ballot?.status === "open") await end(ctx, tx, { id, isDone });
  }
}

/** The act has another number now, and may be decided by others. */
async function restart(
  ctx: KybContext,
  tx: Queryable,
  { business, ballot }: { business: Business; ballot: Ballot },
): Promise<void> {
  const [proposal] = await store.listProposals(tx, [ballot.id]);
  if (proposal === undefined) throw new Error(`nothing is proposed by ${ballot.id}`);
  const { id, member } = proposal;
  const { charter, epoch, nonce } = business;
  const electorate = electorateOf(charter, {
    category: businessCategory.governance,
    rule: ruleOf(proposal, charter),
    without: member ?? undefined,
  });
  const isDone = await isExecuted(ctx, tx, { business, proposal, withdrawals: new Map() });
  const isMoot = await wouldFail(ctx, tx, { business, proposal });
  if (isDone || electorate.voters.length === 0 || isMoot) {
    await end(ctx, tx, { id, isDone });
    return;
  }
  await store.forgetVotes(tx, id);
  await store.restartProposal(tx, id, nonce);
  const hash = governanceHash({ ...actOf(proposal), nonce });
  await restartBallot(tx, { id, epoch, ...electorate, hash });
}

/** Nobody is asked any more. */
async function end(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  { id, isDone }: { id: string; isDone: boolean },
): Promise<void> {
  const now = ctx.clock.now();
  await endBallot(tx, { id, status: "cancelled", now });
  await store.setProposalStatus(tx, [id], { status: isDone ? "executed" : "failed", now });
}

/** Whether the wallet is as the act would make it. */
async function isExecuted(
  { clock }: Pick<KybContext, "clock">,
  tx: Queryable,
  given: { business: Business; proposal: Proposal; withdrawals: Withdrawals },
): Promise<boolean> {
  const { address, charter, successor } = given.business;
  const { id, operation, arguments: args, member } = given.proposal;
  if (operation === "withdraw") {
    const isKnown = given.withdrawals.get(id) === true;
    return isKnown || store.isWithdrawn(tx, { business: address, arguments: args });
  }
  if (operation === "changeCharter")
    return args === governanceActs.changeCharter(encodeCharter(charter)).arguments;
  if (operation === "moveTo")
    return successor !== null && args === governanceActs.moveTo(successor).arguments;
  const [open] = await listRemovals(tx, [address]);
  return open?.member === member && !isRenewable(open, clock.now());
}

/** Whether the wallet would refuse it as it is now. */
async function wouldFail(
  { clock }: Pick<KybContext, "clock">,
  tx: Queryable,
  { business, proposal }: { business: Business; proposal: Proposal },
): Promise<boolean> {
  const { address, charter, status } = business;
  const { operation, member } = proposal;
  if (operation === "withdraw") return false;
  if (status === "moved") return true;
  if (operation !== "startRemoval") return false;
  if (charter.members.every((each) => each.address !== member)) return true;
  const [open] = await listRemovals(tx, [address]);
  return open !== undefined && !(open.member === member && isRenewable(open, clock.now()));
}

/** What becomes of a proposal once its transaction is final; the roster follows what the chain then says. */
export function governanceFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    [governKind]: async (tx, done) => {
      const now = ctx.clock.now();
      for (const { subjectId, status, hash, blockNumber } of done) {
        const [id = ""] = subjectId.split(".");
        const [proposal] = await store.listProposals(tx, [id]);
        if (proposal === undefined) continue;
        const outcome = status === "succeeded" ? "executed" : "failed";
        if (outcome === "failed") await store.noteRefusedProposal(tx, id, blockNumber);
        else await store.setProposalStatus(tx, [id], { status: outcome, now });
        await requestLook(tx, proposal.business);
        const details = { operation: operations[proposal.operation], proposal: id, hash };
        const subject = proposal.business;
        const action = `business.govern.${outcome}`;
        await ctx.audit.record(tx, { actor: "system", action, subject, details });
      }
    },
  };
}

/** Forgets proposals 30 days after they ended. */
export async function purgeProposals(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  await store.deleteProposals(ctx.db, ctx.clock.now() - retentionSeconds);
}

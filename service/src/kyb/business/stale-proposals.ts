// What happens to proposals when another act of governance has reached the chain first (decisions section 6).
import {
  businessCategory,
  encodeCharter,
  governanceActs,
  governanceHash,
  type Address,
} from "@svc/protocol";
import type { Queryable } from "../../platform/database/db.ts";
import { type Ballot, electorateOf } from "../ballot/ballot.ts";
import {
  endBallot,
  lockBallot,
  lockOpenBallots,
  reopenBallot,
  restartBallot,
} from "../ballot/ballot-store.ts";
import type { Business } from "./business.ts";
import * as store from "./proposal-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { actOf, type Proposal, ruleOf } from "./proposal.ts";
import { isRenewable, standsInTheWayOf } from "./removal.ts";
import { listRemovals } from "./removal-store.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

/** Restarts open proposals after an act of governance that has not changed members or rules. */
export async function restartProposals(
  ctx: KybContext,
  tx: Queryable,
  business: Business,
): Promise<void> {
  for (const ballot of await lockOpenBallots(tx, business.address))
    if (ballot.kind === "governance") await restartProposal(ctx, tx, { business, ballot });
}

/** For proposals to withdraw a signature, by id: whether the wallet still has that signature. */
export type Withdrawals = ReadonlyMap<string, "recorded" | "gone">;

/** Asks the chain about those proposals that may be obsolete. @throws if the chain's node cannot be asked */
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
        return [id, isRecorded ? "recorded" : "gone"] as const;
      }),
    ),
  );
}

/**
 * Settles acts that members approved and whose transaction was reverted, and ends ballots on withdrawing a signature
 * that is gone already.
 *
 * @param given.business its state as of `block`
 * @param given.withdrawals what {@link findWithdrawals} has found; a proposal that is missing is left to the next look
 */
export async function mendProposals(
  ctx: KybContext,
  tx: Queryable,
  given: { business: Business; block: number; withdrawals: Withdrawals },
): Promise<void> {
  const { business, block, withdrawals } = given;
  const of = { business: business.address, block };
  for (const proposal of await store.listRefusedProposals(tx, of)) {
    if (proposal.operation === "withdraw" && !withdrawals.has(proposal.id)) continue;
    await settleRefused(ctx, tx, { business, proposal, withdrawals });
  }
  for (const [id, signature] of withdrawals) {
    const locked = signature === "gone" ? await lockBallot(tx, id) : null;
    if (locked?.ballot.status === "open") await end(ctx, tx, { id, status: "executed" });
  }
}

/**
 * Settles an act whose transaction was reverted. If its nonce is still unused, the wallet refused the act itself, so it
 * has failed. Otherwise somebody else may have submitted the same approvals, and the act is executed; or another act
 * came first, and the members are asked again.
 */
async function settleRefused(ctx: KybContext, tx: Queryable, given: Judged): Promise<void> {
  const { business, proposal } = given;
  const { id } = proposal;
  const now = ctx.clock.now();
  const locked = await lockBallot(tx, id);
  if (locked === null || proposal.nonce === business.nonce) {
    await store.setProposalStatus(tx, [id], { status: "failed", now });
    return;
  }
  if (await isExecuted(ctx, tx, given)) {
    await store.setProposalStatus(tx, [id], { status: "executed", now });
    return;
  }
  await reopenBallot(tx, id);
  await restartProposal(ctx, tx, { business, ballot: locked.ballot });
}

/**
 * Restarts the ballot of a proposal with the wallet's next nonce and the present electorate. If the act is executed
 * already, or has become impossible, the proposal ends instead.
 */
export async function restartProposal(
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
    await end(ctx, tx, { id, status: isDone ? "executed" : "failed" });
    return;
  }
  await store.restartProposal(tx, id, nonce);
  const hash = governanceHash({ ...actOf(proposal), nonce });
  await restartBallot(tx, { id, epoch, ...electorate, hash });
}

/** Ends a proposal and its ballot. */
async function end(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  { id, status }: { id: string; status: "executed" | "failed" },
): Promise<void> {
  const now = ctx.clock.now();
  await endBallot(tx, { id, status: "cancelled", now });
  await store.setProposalStatus(tx, [id], { status, now });
}

/** A proposal, and the state to compare it with. */
interface Judged {
  readonly business: Business;
  readonly proposal: Proposal;
  readonly withdrawals: Withdrawals;
}

/** Whether the wallet is already in the state to which the act leads. */
async function isExecuted(
  { clock }: Pick<KybContext, "clock">,
  tx: Queryable,
  given: Judged,
): Promise<boolean> {
  const { address, charter, successor } = given.business;
  const { id, operation, arguments: args, member } = given.proposal;
  if (operation === "withdraw") {
    const isGone = given.withdrawals.get(id) === "gone";
    return isGone || store.isWithdrawn(tx, { business: address, arguments: args });
  }
  if (operation === "changeCharter")
    return args === governanceActs.changeCharter(encodeCharter(charter)).arguments;
  if (operation === "moveTo")
    return successor !== null && args === governanceActs.moveTo(successor).arguments;
  const [open] = await listRemovals(tx, [address]);
  return open?.member === member && !isRenewable(open, clock.now());
}

/** Whether the wallet would refuse the act in its present state. */
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
  return open !== undefined && standsInTheWayOf(member, { open, now: clock.now() });
}

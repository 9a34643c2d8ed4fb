// What becomes of proposals when another act of governance reached the chain first (decisions section 6).
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
import * as store from "./governance-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { actOf, type Proposal, ruleOf } from "./proposal.ts";
import { isRenewable, standsInTheWayOf } from "./removal.ts";
import { listRemovals } from "./removal-store.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

/** Restarts open proposals after an act of governance that left members and rules as they were. */
export async function restartProposals(
  ctx: KybContext,
  tx: Queryable,
  business: Business,
): Promise<void> {
  for (const ballot of await lockOpenBallots(tx, business.address))
    if (ballot.kind === "governance") await restartProposal(ctx, tx, { business, ballot });
}

/** Proposals to take back a signature that may be done already, each with whether the wallet no longer has it. */
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
 * Settles acts that members approved and the chain refused. Somebody else may have handed their approvals to the wallet:
 * then the act is done. If another act came first and took the nonce that they approved, the members are asked again.
 * Otherwise the act has failed. Also ends ballots on taking back a signature that is gone already.
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
    await restartProposal(ctx, tx, { business, ballot });
  }
  for (const [id, isDone] of withdrawals) {
    const ballot = isDone ? await lockBallot(tx, id) : null;
    if (ballot?.status === "open") await end(ctx, tx, { id, isDone });
  }
}

/**
 * Asks the members again: the act has another nonce now, and others may have the vote. If it is done already, or can no
 * longer be done, nobody is asked.
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
    await end(ctx, tx, { id, isDone });
    return;
  }
  await store.forgetVotes(tx, id);
  await store.restartProposal(tx, id, nonce);
  const hash = governanceHash({ ...actOf(proposal), nonce });
  await restartBallot(tx, { id, epoch, ...electorate, hash });
}

/** Ends a proposal and its ballot. */
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
  return open !== undefined && standsInTheWayOf(member, { open, now: clock.now() });
}

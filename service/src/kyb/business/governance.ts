// What follows from votes on governance (decisions section 6): the ballot decides, a transaction carries the act out on
// chain, and the tables then mirror the chain.
import { governanceFunctions } from "@svc/protocol";
import {
  enqueueTransaction,
  type FinalHandlers,
  findTransactionStatus,
} from "../../chain/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { purgeInBatches } from "../../platform/database/purge.ts";
import type { BallotRules } from "../ballot/ballot.ts";
import { joinApprovals } from "../ballot/ballots.ts";
import { findBusiness } from "./business-store.ts";
import * as store from "./proposal-store.ts";
import type { KybContext } from "../kyb-context.ts";
import type { Proposal } from "./proposal.ts";
import { renewRemoval } from "./removal.ts";
import { requestLook } from "./roster-store.ts";
import { showProposals } from "./shown-proposal.ts";
import { restartProposal } from "./stale-proposals.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

/** The kind of the transaction that carries out an act of governance. */
const governKind = "business.govern";
const retentionSeconds = 30 * 86_400;

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
    // There is at most one transaction for a subject, so a restarted proposal needs another subject. The first subject
    // is the proposal's id alone, because processes of an earlier version, which may handle its end, know only that
    // form.
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
    if (business !== null) await restartProposal(ctx, tx, { business, ballot });
  },
};

/** Renews a removal that is still open on chain since its member only answered by votes. @returns whether it did */
async function decideRemovalAgain(
  ctx: KybContext,
  tx: Queryable,
  { id, business, operation, member }: Proposal,
): Promise<boolean> {
  if (operation !== "startRemoval" || member === null) return false;
  if (!(await renewRemoval(ctx, tx, { business, member }))) return false;
  await store.setProposalStatus(tx, [id], { status: "executed", now: ctx.clock.now() });
  const entry = { actor: "system", action: "business.govern.executed", subject: business };
  const details = { operation: governanceFunctions[operation], proposal: id };
  await ctx.audit.record(tx, { ...entry, details });
  return true;
}

/** Handles final transactions of proposals. The business is then read from the chain. */
export function governanceFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    [governKind]: async (tx, done) => {
      const now = ctx.clock.now();
      for (const { subjectId, status, hash, blockNumber } of done) {
        const [id = ""] = subjectId.split(".");
        const [proposal] = await store.listProposals(tx, [id]);
        if (proposal === undefined) continue;
        const outcome = status === "succeeded" ? "executed" : "failed";
        // First, because the row of a business is always locked before those of its proposals.
        await requestLook(tx, proposal.business);
        if (outcome === "failed") await store.noteRefusedProposal(tx, id, blockNumber);
        else await store.setProposalStatus(tx, [id], { status: outcome, now });
        const details = { operation: governanceFunctions[proposal.operation], proposal: id, hash };
        const subject = proposal.business;
        const action = `business.govern.${outcome}`;
        await ctx.audit.record(tx, { actor: "system", action, subject, details });
      }
    },
  };
}

/** Deletes proposals 30 days after they ended. */
export async function purgeProposals(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - retentionSeconds;
  await purgeInBatches(async (limit) => store.deleteProposals(ctx.db, before, limit));
}

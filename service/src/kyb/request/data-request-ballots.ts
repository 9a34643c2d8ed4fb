// What follows from the votes on a data request.
import { Problem } from "../../platform/http/problems.ts";
import type { BallotRules } from "../ballot/ballot.ts";
import { approvalHashOf, type DataRequest } from "./data-request.ts";
import * as store from "./data-request-store.ts";
import { endDataRequest } from "./data-requests.ts";
import { refusalDelay } from "../ballot/refusal-delay.ts";

export const dataRequestBallots: BallotRules = {
  show: async (ctx, ids) => {
    const requests = await store.findRequests(ctx.db, ids);
    return new Map(requests.map((request) => [request.id, shownOf(request)]));
  },

  fixHash: async (_ctx, tx, { ballot, optional }) => {
    const request = await store.findRequest(tx, ballot.id);
    if (request?.status !== "pending_approval") throw new Problem("ballot_over");
    const offered = request.fields.filter((field) => field.optional).map(({ name }) => name);
    // In the order of the request, whatever the wallet's; a name twice or one that was not asked for counts as none.
    const chosen = offered.filter((name) => optional.includes(name));
    if (chosen.length !== optional.length)
      throw new Problem("result_refused", {
        message: "result_refused: optional names a field twice, or one that is not optional",
      });
    await store.fixOptional(tx, ballot.id, chosen);
    return approvalHashOf(request, chosen);
  },

  // The signature takes milliseconds: it is made after this transaction, by whoever is woken (releases.ts).
  onApproved: async (ctx, tx, { ballot }) => store.markApproved(tx, ballot.id, ctx.clock.now()),

  onEnded: async (ctx, tx, { ballot, outcome }) => {
    const { id } = ballot;
    if (outcome === "expired") {
      await endDataRequest(ctx, tx, { id, status: "refused", reason: "expired" });
      return;
    }
    const dueAt = ctx.clock.now() + refusalDelay(ctx.random);
    await store.putOffRefusal(tx, id, dueAt);
  },

  onRestarted: async (_ctx, tx, ballot) => store.fixOptional(tx, ballot.id, null),

  onStopped: async (ctx, tx, { ballot, reason }) => {
    await endDataRequest(ctx, tx, { id: ballot.id, status: "failed", reason });
  },
};

/** What a voter's wallet recomputes the approval from. */
function shownOf(request: DataRequest) {
  const namesOf = (optional: boolean) =>
    request.fields.filter((field) => field.optional === optional).map(({ name }) => name);
  return {
    requestId: request.id,
    audience: request.clientDomainId,
    required: namesOf(false),
    optional: namesOf(true),
    fixedOptional: request.fixedOptional,
    purpose: request.purpose,
    deadline: request.expiresAt,
  };
}

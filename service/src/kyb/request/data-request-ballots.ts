// What follows from the votes on a data request.
import type { BusinessFieldName } from "@svc/protocol";
import { findCompanyNames } from "../../credentials/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import type { KybContext } from "../kyb-context.ts";
import { Problem } from "../../platform/http/problems.ts";
import type { BallotRules } from "../ballot/ballot.ts";
import { approvalHashOf, type DataRequest, requiredNames } from "./data-request.ts";
import * as store from "./data-request-store.ts";
import { endDataRequest } from "./data-requests.ts";
import { refusalDelay } from "../ballot/refusal-delay.ts";

export const dataRequestBallots: BallotRules = {
  show: async (ctx, ids) => {
    const requests = await store.findRequests(ctx.db, ids);
    const shown = new Map<string, object>();
    for (const some of Map.groupBy(requests, ({ business }) => business).values()) {
      const available = await findAvailable(ctx, ctx.db, some);
      for (const request of some) shown.set(request.id, shownOf(request, available));
    }
    return shown;
  },

  fixHash: async (ctx, tx, { ballot, optional }) => {
    const request = await store.findRequest(tx, ballot.id);
    if (request?.status !== "pending_approval") throw new Problem("ballot_over");
    const available = await findAvailable(ctx, tx, [request]);
    // In the order of the request. Repeated names and names that cannot be chosen drop out here, and are then refused
    // by the comparison of lengths.
    const chosen = optionalNames(request).filter(
      (name) => optional.includes(name) && available.has(name),
    );
    if (chosen.length !== optional.length)
      throw new Problem("result_refused", {
        message:
          "result_refused: optional names a field twice, or one that is not optional or that the business does not have now",
      });
    await store.fixOptional(tx, ballot.id, chosen);
    return approvalHashOf(request, chosen);
  },

  // Signing the attestation takes milliseconds, so it is done after this transaction, in a process that this wakes
  // (releases.ts).
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

const optionalNames = ({ fields }: DataRequest): BusinessFieldName[] =>
  fields.filter(({ optional }) => optional).map(({ name }) => name);

/** Which optional fields of these requests the business has now; one statement, or none if nothing is optional. */
async function findAvailable(
  { clock }: Pick<KybContext, "clock">,
  db: Queryable,
  requests: readonly DataRequest[],
): Promise<ReadonlySet<string>> {
  const [first] = requests;
  const names = [...new Set(requests.flatMap(optionalNames))];
  if (first === undefined || names.length === 0) return new Set();
  const { environment, business } = first;
  return findCompanyNames(db, { environment, business, names, now: clock.now() });
}

/**
 * What a voter's wallet needs to recompute the approval. Fields that the business does not have are not offered, since
 * they cannot be released.
 */
function shownOf(request: DataRequest, available: ReadonlySet<string>) {
  const { fields, fixedOptional } = request;
  const mayGo = (name: string): boolean =>
    available.has(name) || fixedOptional?.includes(name) === true;
  return {
    requestId: request.id,
    audience: request.clientDomainId,
    required: requiredNames(fields),
    optional: optionalNames(request).filter(mayGo),
    unavailable: optionalNames(request).filter((name) => !mayGo(name)),
    fixedOptional,
    purpose: request.purpose,
    deadline: request.expiresAt,
  };
}

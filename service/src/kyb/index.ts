import type { CredentialsContext } from "../credentials/index.ts";
import type { Http } from "../platform/http.ts";
import { Problem } from "../platform/problems.ts";
import type { SealedColumn } from "../platform/sealed-columns.ts";
import type { BallotRules } from "./ballot.ts";
import { idempotencySealedColumns } from "./idempotency.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import type { KybCallbacks, KybContext, WalletCaller } from "./kyb-context.ts";
import { memberSealedColumns } from "./members.ts";

export type { Ballot, BallotRules, MemberApproval, Vote } from "./ballot.ts";
export { cancelBallot, castVoteIn, type NewBallot, openBallot } from "./ballots.ts";
export type { Business, BusinessMember, BusinessStatus } from "./business.ts";
export { findBusiness, noteBusinessAcquaintance } from "./business-store.ts";
export { kybJobs } from "./jobs.ts";
export type { ChangedBusiness, KybCallbacks, KybContext } from "./kyb-context.ts";
export { listMembers } from "./members.ts";

/** What this slice keeps sealed. */
export const kybSealedColumns: readonly SealedColumn[] = [
  ...idempotencySealedColumns,
  ...memberSealedColumns,
];

const unbuilt: BallotRules = {
  show: async () => new Map(),
  onApproved: async () => {
    throw new Problem("unsupported");
  },
  onEnded: async () => undefined,
};

/** Opens the slice. @param given.businessLogins what follows from votes on logins, which another slice keeps */
export function openKyb(
  ctx: CredentialsContext,
  given: KybCallbacks & { readonly businessLogins: BallotRules },
): KybContext {
  return {
    ...ctx,
    onRosterChanged: async (tx, changed) => given.onRosterChanged(tx, changed),
    ballotKinds: {
      data_request: unbuilt,
      signature_request: unbuilt,
      governance: unbuilt,
      business_login: given.businessLogins,
    },
  };
}

/** Adds the routes of merchants. */
export async function kybRoutes(_ctx: KybContext, _http: Http): Promise<void> {}

/** Adds the routes of wallets. */
export function kybWalletRoutes(
  ctx: KybContext,
  scope: Http,
  { getWalletUser }: { getWalletUser: WalletCaller },
): void {
  inboxRoutes(ctx, scope, getWalletUser);
}

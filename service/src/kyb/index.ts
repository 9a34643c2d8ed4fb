import type { FinalHandlers } from "../chain/index.ts";
import type { CredentialsContext } from "../credentials/index.ts";
import type { Http } from "../platform/http.ts";
import type { SealedColumn } from "../platform/sealed-columns.ts";
import { attestationKeySealedColumns, createAttestationKeys } from "./attestation-keys.ts";
import { attestationRoutes } from "./attestation-routes.ts";
import type { BallotRules } from "./ballot.ts";
import { billingRoutes } from "./billing-routes.ts";
import { blockRoutes } from "./block-routes.ts";
import { businessRoutes } from "./business-routes.ts";
import { requireEntitlement } from "./caller.ts";
import { dataRequestBallots } from "./data-request-ballots.ts";
import { dataRequestRoutes } from "./data-request-routes.ts";
import { endpointRoutes } from "./endpoint-routes.ts";
import { eventRoutes } from "./event-routes.ts";
import { foundingFinalHandlers } from "./founding.ts";
import { governanceFinalHandlers, governanceRules } from "./governance.ts";
import { idempotencySealedColumns } from "./idempotency.ts";
import { inboxRoutes } from "./inbox-routes.ts";
import type { KybCallbacks, KybContext, WalletCaller } from "./kyb-context.ts";
import { lookupRoutes } from "./lookup-routes.ts";
import { memberSealedColumns } from "./members.ts";
import { offerRoutes } from "./offer-routes.ts";
import { offerWalletRoutes } from "./offer-wallet-routes.ts";
import { offerSealedColumns } from "./offers.ts";
import { proposalSealedColumns } from "./shown-proposal.ts";
import { releaseSealedColumns } from "./releases.ts";
import { removalFinalHandlers } from "./removal.ts";
import { signatureBallots, signatureFinalHandlers } from "./signature-ballots.ts";
import { signatureSealedColumns } from "./signature-requests.ts";
import { signatureRoutes } from "./signature-routes.ts";
import { validRoutes } from "./valid-routes.ts";

export type { Ballot, BallotRules, MemberApproval, Vote } from "./ballot.ts";
export { cancelBallot, castVoteIn, type NewBallot, openBallot } from "./ballots.ts";
export type { Business, BusinessMember, BusinessStatus } from "./business.ts";
export { findBusinessDomain } from "./business-domain.ts";
export { hasReleased } from "./charge-store.ts";
export { findBusiness, noteBusinessAcquaintance } from "./business-store.ts";
export { kybJobs } from "./jobs.ts";
export type { ChangedBusiness, KybCallbacks, KybContext } from "./kyb-context.ts";
export { createLoginDirectory } from "./login-directory.ts";
export { listMembers } from "./members.ts";
export { requestLook } from "./roster-store.ts";
export {
  announceMove,
  listBusinesses,
  reinstateBusiness,
  setBusinessVerified,
  showBusiness,
  suspendBusiness,
  withdrawMove,
} from "./standing.ts";
export { holdCompany, noteCompanyRecord } from "./company-standing.ts";

/** What this slice keeps sealed. */
export const kybSealedColumns: readonly SealedColumn[] = [
  ...attestationKeySealedColumns,
  ...idempotencySealedColumns,
  ...memberSealedColumns,
  ...offerSealedColumns,
  ...proposalSealedColumns,
  ...releaseSealedColumns,
  ...signatureSealedColumns,
];

/** What becomes of what this slice has sent to the chain. */
export function kybFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    ...foundingFinalHandlers(ctx),
    ...governanceFinalHandlers(ctx),
    ...removalFinalHandlers(ctx),
    ...signatureFinalHandlers(ctx),
  };
}

/** Opens the slice. @param given.businessLogins what follows from votes on logins, which another slice keeps */
export function openKyb(
  ctx: CredentialsContext,
  given: KybCallbacks &
    Pick<KybContext, "signRequestObject"> & { readonly businessLogins: BallotRules },
): KybContext {
  return {
    ...ctx,
    signRequestObject: (claims) => given.signRequestObject(claims),
    onRosterChanged: async (tx, changed) => given.onRosterChanged(tx, changed),
    attestationKeys: createAttestationKeys(ctx),
    ballotKinds: {
      data_request: dataRequestBallots,
      signature_request: signatureBallots,
      governance: governanceRules,
      business_login: given.businessLogins,
    },
  };
}

/** Adds the routes of merchants. */
export async function kybRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (plain) => {
    const scope = plain as Http;
    requireEntitlement(ctx, scope, "kyb:read");
    lookupRoutes(ctx, scope);
  });
  await validRoutes(ctx, http);
  attestationRoutes(ctx, http);
  await billingRoutes(ctx, http);
  await endpointRoutes(ctx, http);
  await eventRoutes(ctx, http);
  await dataRequestRoutes(ctx, http);
  await signatureRoutes(ctx, http);
  await offerRoutes(ctx, http);
}

/** Adds the routes of wallets. */
export function kybWalletRoutes(
  ctx: KybContext,
  scope: Http,
  { getWalletUser }: { getWalletUser: WalletCaller },
): void {
  inboxRoutes(ctx, scope, getWalletUser);
  businessRoutes(ctx, scope, getWalletUser);
  blockRoutes(ctx, scope, getWalletUser);
  offerWalletRoutes(ctx, scope, getWalletUser);
}

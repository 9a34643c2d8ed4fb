import type { FinalHandlers } from "../chain/index.ts";
import type { CredentialsContext } from "../credentials/index.ts";
import type { Http } from "../platform/http/http.ts";
import type { WalletCaller } from "../platform/http/wallet-caller.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { attestationKeyColumn, createAttestationKeys } from "./release/attestation-keys.ts";
import { attestationRoutes } from "./release/attestation-routes.ts";
import type { BallotRules } from "./ballot/ballot.ts";
import { billingRoutes } from "./billing/billing-routes.ts";
import { blockRoutes } from "./business/block-routes.ts";
import { businessRoutes } from "./business/business-routes.ts";
import { requireEntitlement } from "./entitlement.ts";
import { dataRequestBallots } from "./request/data-request-ballots.ts";
import { dataRequestRoutes } from "./request/data-request-routes.ts";
import { endpointRoutes } from "./event/endpoint-routes.ts";
import { businessWebhooks } from "./event/event-schemas.ts";
import { eventRoutes } from "./event/event-routes.ts";
import { foundingFinalHandlers } from "./business/founding.ts";
import { governanceFinalHandlers, governanceRules } from "./business/governance.ts";
import { idempotentAnswerColumn } from "./idempotency.ts";
import { inboxRoutes } from "./ballot/inbox-routes.ts";
import type { KybCallbacks, KybContext } from "./kyb-context.ts";
import { lookupRoutes } from "./business/lookup-routes.ts";
import { memberNameColumn } from "./business/members.ts";
import { offerRoutes } from "./offer/offer-routes.ts";
import { offerWalletRoutes } from "./offer/offer-wallet-routes.ts";
import { offeredRequestColumn } from "./offer/offers.ts";
import { proposalNamesColumn } from "./business/shown-proposal.ts";
import { releaseHistoryRoutes } from "./release/release-history-routes.ts";
import { attestationColumn } from "./release/releases.ts";
import { removalFinalHandlers } from "./business/removal.ts";
import {
  signatureRequestBallots,
  signatureFinalHandlers,
} from "./request/signature-request-ballots.ts";
import { documentColumn } from "./request/signature-requests.ts";
import { signatureRequestRoutes } from "./request/signature-request-routes.ts";
import { validRoutes } from "./release/valid-routes.ts";

export { cancelBallot } from "./ballot/ballots.ts";
export type { Business, BusinessStatus } from "./business/business.ts";
export { findBusiness } from "./business/business-store.ts";
export { kybJobs } from "./jobs.ts";
export { forgetClaims } from "./offer/offer-store.ts";
export type { KybContext } from "./kyb-context.ts";
export { createLoginDirectory } from "./business/login-directory.ts";
export {
  announceMove,
  getBusiness,
  listBusinesses,
  reinstateBusiness,
  setBusinessVerified,
  showBusiness,
  suspendBusiness,
  withdrawMove,
} from "./business/standing.ts";
export {
  attestationKeyPurpose,
  listAttestationKeys,
  revokeAttestationKey,
  rotateAttestationKey,
} from "./release/manage-attestation-keys.ts";
export { holdCompany, noteCompanyRecord } from "./business/company-standing.ts";
export { reportRequest } from "./request/request-report.ts";
export { listSeatsOf } from "./business/user-report-store.ts";

/** The sealed columns of this slice. */
export const kybSealedColumns: readonly SealedColumn[] = [
  attestationKeyColumn,
  idempotentAnswerColumn,
  memberNameColumn,
  offeredRequestColumn,
  proposalNamesColumn,
  attestationColumn,
  documentColumn,
];

/** The handlers of this slice's final transactions. */
export function kybFinalHandlers(ctx: KybContext): FinalHandlers {
  return {
    ...foundingFinalHandlers(ctx),
    ...governanceFinalHandlers(ctx),
    ...removalFinalHandlers(ctx),
    ...signatureFinalHandlers(ctx),
  };
}

/** Opens the slice. @param given.businessLogins the ballot rules of logins, which belong to another slice */
export function openKyb(
  ctx: CredentialsContext,
  { businessLogins, ...callbacks }: KybCallbacks & { readonly businessLogins: BallotRules },
): KybContext {
  return {
    ...ctx,
    ...callbacks,
    attestationKeys: createAttestationKeys(ctx),
    ballotKinds: {
      data_request: dataRequestBallots,
      signature_request: signatureRequestBallots,
      governance: governanceRules,
      business_login: businessLogins,
    },
  };
}

/** Adds the routes of merchants. */
export async function kybRoutes(ctx: KybContext, http: Http): Promise<void> {
  http.webhooks.push(...businessWebhooks);
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:read");
    lookupRoutes(ctx, scope);
  });
  await validRoutes(ctx, http);
  attestationRoutes(ctx, http);
  await billingRoutes(ctx, http);
  await endpointRoutes(ctx, http);
  await eventRoutes(ctx, http);
  await dataRequestRoutes(ctx, http);
  await signatureRequestRoutes(ctx, http);
  await offerRoutes(ctx, http);
}

/** Adds the routes of wallets. */
export function kybWalletRoutes(ctx: KybContext, scope: Http, getWalletUser: WalletCaller): void {
  inboxRoutes(ctx, scope, getWalletUser);
  businessRoutes(ctx, scope, getWalletUser);
  blockRoutes(ctx, scope, getWalletUser);
  releaseHistoryRoutes(ctx, scope, getWalletUser);
  offerWalletRoutes(ctx, scope, getWalletUser);
}

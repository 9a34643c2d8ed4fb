import type { AccountsContext } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { Http } from "../platform/http/http.ts";
import { createMailer } from "../platform/mail.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { checkRoutes } from "./check-routes.ts";
import { companyValueColumn } from "./company-issue.ts";
import type { CredentialsCallbacks, CredentialsContext } from "./credentials-context.ts";
import { codeColumn, emailColumn } from "./email.ts";
import { credentialValuesColumn } from "./issue.ts";
import { openIssuerKeys } from "./issuer-key-lookup.ts";
import { issuerRoutes } from "./issuer-routes.ts";
import { ensureBuiltInIssuers } from "./issuers.ts";
import { openLookups } from "./lookups.ts";

export { waitForAttestation } from "./attestation.ts";
export { credentialFinalHandlers, sendToRegistry } from "./batches.ts";
export { collectCredential, listOwnCredentials } from "./collection.ts";
export {
  type CompanyClaim,
  type CompanyField,
  findCompanyNames,
  listCompanyFields,
  matchCompanyLeaves,
  proveCompanyLeaves,
} from "./company-fields.ts";
export { issueCompanyRecord } from "./company-issue.ts";
export { isSoleProprietor, isVouchedFor } from "./company-store.ts";
export { sampleCompanyFields } from "./company-sample.ts";
export type { GivenCompanyField } from "./company-record.ts";
export {
  type AskedName,
  findLiveLeaves,
  findVerified,
  listSupposedLeaves,
  matchLeaves,
  proveLeaves,
} from "./checks.ts";
export type {
  CompanyCallbacks,
  CredentialsCallbacks,
  CredentialsContext,
  InvalidLeaf,
  RecordedCompany,
} from "./credentials-context.ts";
export { forgetUser, revokeCredential } from "./ending.ts";
export { issueCredential } from "./issue.ts";
export {
  createIssuer,
  createIssuerKey,
  distrustIssuer,
  foreseeDistrust,
  getBuiltInIssuer,
  getIssuer,
  listIssuerKeys,
  listIssuers,
  revokeIssuerKey,
} from "./issuers.ts";
export { credentialJobs } from "./jobs.ts";
export { refuseUnknownNames } from "./unknown-names.ts";
export { reportCredentials } from "./user-report.ts";
export { credentialWalletRoutes } from "./wallet-routes.ts";

/** The sealed columns of this slice. */
export const credentialSealedColumns: readonly SealedColumn[] = [
  credentialValuesColumn,
  companyValueColumn,
  emailColumn,
  codeColumn,
];

/** The slice of one process, which has to be closed. */
export type Credentials = CredentialsContext & AsyncDisposable;

/** Opens what the slice keeps in memory and creates the built-in issuers that are missing. */
export async function openCredentials(
  ctx: ChainContext & AccountsContext,
  callbacks: CredentialsCallbacks,
): Promise<Credentials> {
  await ensureBuiltInIssuers(ctx);
  const issuerKeys = await openIssuerKeys(ctx);
  const lookups = openLookups(ctx);
  const mailer = createMailer(ctx);
  return {
    ...ctx,
    ...callbacks,
    issuerKeys,
    lookups,
    mailer,
    async [Symbol.asyncDispose]() {
      mailer?.close();
      await issuerKeys[Symbol.asyncDispose]();
    },
  };
}

/** Adds the routes of merchants and issuers; {@link credentialWalletRoutes} adds those of wallets. */
export async function credentialRoutes(ctx: CredentialsContext, http: Http): Promise<void> {
  await checkRoutes(ctx, http);
  await issuerRoutes(ctx, http);
}

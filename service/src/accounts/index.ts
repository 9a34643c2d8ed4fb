import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { nextSigningKeyColumn, signingKeyColumn } from "./packages.ts";

export { acquaint, forgetAcquaintances, isAcquainted } from "./acquaintance-store.ts";
export { forgetMemberships } from "./organization-store.ts";
export { type ApiKey, makeApiKey } from "./api-key.ts";
export { type OrganizationLimits, setLimits } from "./organization-limits.ts";
export { type ApiKeys, openApiKeys, readApiKey } from "./api-key-lookup.ts";
export { createApiKey, createManagementKey, listApiKeys, revokeApiKey } from "./api-keys.ts";
export {
  type Acr,
  acrs,
  authenticationMethods,
  type Client,
  type ClientSettings,
} from "./client.ts";
export {
  type ClientDomain,
  type Environment,
  isProofWaived,
  liesUnder,
  parseEnvironment,
  proofOf,
} from "./client-domain.ts";
export {
  createDomain,
  getDomain,
  isVerifiedNow,
  listDomains,
  limitCallbackHosts,
  moveLocalDomain,
  proveDomain,
} from "./client-domains.ts";
export { type Clients, openClients } from "./client-lookup.ts";
export type { ClientRow, SecretRow } from "./client-store.ts";
export {
  addSecret,
  createClient,
  disableClient,
  getClient,
  listClients,
  type NewClient,
  revokeSecret,
  updateClient,
} from "./clients.ts";
export type { Entitlement } from "./entitlement.ts";
export { listEntitlements, setEntitlement } from "./entitlements.ts";
export {
  type ClientJwk,
  type ClientKeySet,
  isPrivateJwk,
  parseKeySet,
  rsaBounds,
} from "./key-set.ts";
export { accountJobs } from "./jobs.ts";
export { openRowCache } from "./row-cache.ts";
export {
  type AccountsContext,
  apiKeyOf,
  limitOfKey,
  refuseKeyInUrl,
  requireApiKey,
} from "./api-key-guard.ts";
export { accountRoutes } from "./routes.ts";
export { readRequester, type Requester, verifiedDomainOf } from "./requester.ts";
export { openUseRecord } from "./use-record.ts";
export { reportTies } from "./user-report-store.ts";
export { parseName } from "./organization.ts";
export {
  addMember,
  createOrganization,
  getOrganization,
  listMembers,
  listOrganizations,
  removeMember,
} from "./organizations.ts";
export {
  type Balance,
  capture,
  type Hold,
  hold,
  type Purse,
  readBalance,
  releaseHold,
  topUp,
} from "./ledger.ts";
export type { KycPackage } from "./package.ts";
export {
  buyPackage,
  getPackage,
  listPackages,
  makeNextSigningKey,
  readSigningKeys,
  switchSigningKey,
} from "./packages.ts";

/** The sealed columns of this slice. */
export const accountsSealedColumns: readonly SealedColumn[] = [
  signingKeyColumn,
  nextSigningKeyColumn,
];

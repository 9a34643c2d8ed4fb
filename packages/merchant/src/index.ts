import { isIssuerUrl, isSafeUrl, openIssuer } from "./issuer.ts";
import { openLogin, type LoginVerbs } from "./login.ts";
import { misconfigured } from "./merchant-error.ts";
import {
  openTokens,
  type AccessToken,
  type IdToken,
  type IdTokenChecks,
} from "./token-verification.ts";
import { machineTime } from "./unix-time.ts";

export { standingInfos, applyEvent } from "./order-state.ts";
export type { OrderState, ReceivedInfo, StatusEntry } from "./order-state.ts";
export { decodeInfos } from "./infos.ts";
export type { Page } from "./api-answer.ts";
export { openKyc } from "./kyc.ts";
export type {
  DataRequest,
  EventOnItsWay,
  Kyc,
  KycOptions,
  ListedOrder,
  OrderDeliveryAttempt,
  RequestedData,
  Validity,
  Verification,
} from "./kyc.ts";
export { openKyb } from "./kyb.ts";
export type { ApiOptions } from "./api-call.ts";
export type {
  AskedDocument,
  AskedFields,
  Kyb,
  EventFilter,
  KybEventOnItsWay,
  PlacedKybEvent,
  Once,
  RequestFilter,
  RequestKind,
} from "./kyb.ts";
export { verifyAttestation } from "./kyb-attestation.ts";
export type { Attestation, ReleasedField } from "./kyb-attestation.ts";
export type { AttestationChecks } from "./kyb-claims.ts";
export { verifyCompanyProof } from "./company-proof.ts";
export type { CompanyProof, ProvedCompanyField, VerifiedCompanyProof } from "./company-proof.ts";
export type { AnyKybEvent, KybEvent, UnknownKybEvent, WalletChangedEvent } from "./kyb-event.ts";
export { verifyWalletChange, type WalletChange } from "./wallet-change.ts";
export type {
  BillingAccount,
  BusinessMembers,
  BusinessRules,
  BusinessSignature,
  BusinessStatus,
  Charge,
  CompanyValidity,
  DataRequestRecord,
  DeliveryAttempt,
  EndpointWithSecret,
  FieldPrice,
  Offer,
  PriceLine,
  Pricing,
  Quote,
  Release,
  SignatureRequestRecord,
  WebhookEndpoint,
} from "./kyb-records.ts";
export { verifyKybWebhook, type KybDelivery } from "./kyb-webhook.ts";
export {
  verifyBusinessSignature,
  type SignatureAnchors,
  type SignedContent,
} from "./business-signature.ts";
export { MerchantError, type MerchantErrorCode } from "./merchant-error.ts";
export { verifyProof } from "./proof.ts";
export type { ProofFact, ProvedField, VerifiedProof } from "./proof.ts";
export { verifyReceipt } from "./receipt.ts";
export type { ReceiptAnchors, ReceiptFact, VerifiedReceipt } from "./receipt.ts";
export { verifyWebhook } from "./webhook.ts";
export type { Delivery } from "./webhook.ts";
export type { AttestedField, Standing } from "./attested-field.ts";
export type { Business } from "./business.ts";
export type { ChainAnchors, ChainNode } from "./chain-view.ts";
export type {
  DataInvalidated,
  DataTransferred,
  OrderEvent,
  StatusUpdated,
  UnknownEvent,
} from "./order-event.ts";
export type { FieldProof } from "./field-proof.ts";
export type { FailureReason, OrderStatus, Status } from "./order-status.ts";
export type { RequestStatement } from "./request-statement.ts";
export type {
  Address,
  BusinessFieldName,
  EcPublicJwk,
  FieldName,
  Hex,
  Hex32,
  Info,
  Receipt,
  TypedDataDocument,
} from "@svc/protocol";
export type {
  Login,
  LoginRequest,
  LoginVerbs,
  LogoutRequest,
  PendingLogin,
  Userinfo,
} from "./login.ts";
export type { AccessToken, IdToken, IdTokenChecks, LogoutToken } from "./token-verification.ts";

/** How a merchant is known to the broker: what was registered as its OAuth client. */
export interface MerchantOptions {
  /** The broker's base address, without a slash at its end; https, or http on this machine. */
  issuer: string;
  clientId: string;
  /** Absent for a browser-only client, which proves itself by PKCE alone. */
  clientSecret?: string;
  /** Where people come back after a login; exactly as registered with the client. */
  redirectUri: string;
  /** The API that access tokens are for: one of the client's registered audiences. */
  audience?: string;
  /** Default: the global fetch. */
  fetch?: typeof fetch;
  /** Unix seconds. Default: this machine's clock. */
  now?: () => number;
}

/** A merchant's side of the broker. It stores nothing but the broker's discovery document and keys, for ten minutes. */
export interface Merchant {
  login: LoginVerbs;
  /**
   * Verifies an id token in full; `login.finish` has done it already.
   *
   * @throws {MerchantError} token_refused; configuration_invalid; issuer_unreachable; rate_limited; response_invalid;
   * issuer_mismatch
   */
  verifyIdToken: (jwt: string, checks?: IdTokenChecks) => Promise<IdToken>;
  /**
   * Verifies an access token that a caller of your API sent as `Authorization: Bearer`.
   *
   * @param checks `audience` is the API's own name; `now` in Unix seconds, by default the time of the SDK's own clock
   * @throws {MerchantError} token_refused; configuration_invalid; issuer_unreachable; rate_limited; response_invalid;
   * issuer_mismatch
   */
  verifyAccessToken: (
    jwt: string,
    checks: { audience: string; now?: number },
  ) => Promise<AccessToken>;
}

/**
 * Opens the SDK. Nothing is sent before the first call.
 *
 * @throws {MerchantError} configuration_invalid; its `reason` names the option
 */
export function openMerchant(options: MerchantOptions): Merchant {
  checkOptions(options);
  // The global fetch is looked up at each call, because a tracer or a test may replace it after the SDK was opened.
  const send: typeof fetch = options.fetch ?? ((...call) => fetch(...call));
  const now = options.now ?? machineTime;
  const issuer = openIssuer({ issuer: options.issuer, fetch: send, now });
  const tokens = openTokens({
    issuer,
    issuerUrl: options.issuer,
    clientId: options.clientId,
    now,
  });
  const login = openLogin({
    issuer,
    tokens,
    issuerUrl: options.issuer,
    clientId: options.clientId,
    clientSecret: options.clientSecret,
    redirectUri: options.redirectUri,
    audience: options.audience === "" ? undefined : options.audience,
    fetch: send,
    now,
  });
  return {
    login,
    verifyIdToken: (jwt, checks) => tokens.idToken(jwt, checks),
    verifyAccessToken: (jwt, checks) => tokens.accessToken(jwt, checks),
  };
}

function checkOptions(options: MerchantOptions): void {
  if (!isIssuerUrl(options.issuer)) throw misconfigured("issuer");
  if (!isSafeUrl(options.redirectUri)) throw misconfigured("redirectUri");
  // A program in JavaScript may pass undefined, from an environment variable that is not set.
  if (!isGiven(options.clientId)) throw misconfigured("clientId");
  // An empty secret means that a setting was forgotten, not that the client is browser-only.
  if (options.clientSecret !== undefined && !isGiven(options.clientSecret))
    throw misconfigured("clientSecret");
}

function isGiven(option: unknown): boolean {
  return typeof option === "string" && option !== "";
}

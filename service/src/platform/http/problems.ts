/** Every error that reaches the wire, by reason: one row, one status, one message. Details that may vary are added at the call. */
const table = {
  // Envelope (KYC, KYB, wallet and account routes)
  invalid_request: [400, "Invalid Request"],
  malformed_request: [400, "the request cannot be read"],
  request_timeout: [408, "the request did not arrive in time"],
  headers_too_large: [431, "the address and the header lines are too long together"],
  body_too_large: [413, "the body is larger than this route takes"],
  unsupported_media_type: [415, "this route takes another content type"],
  method_not_allowed: [405, "this path takes other methods"],
  route_not_found: [404, "no such route"],
  apikey_missing: [401, "an API key is required in the Authorization header"],
  apikey_invalid: [401, "the API key is unknown, revoked, or of the other environment"],
  forbidden: [403, "this may not be called from here"],
  rate_limited: [429, "too many requests; wait as long as Retry-After says"],
  unavailable: [503, "the service cannot answer now; try again"],
  chain_unavailable: [503, "the chain cannot be asked now; try again"],
  internal: [500, "something failed here; quote the request id"],
  key_not_found: [404, "no such live signing key"],
  // Accounts
  organization_not_found: [404, "no such organization"],
  member_not_found: [404, "no such member"],
  client_domain_not_found: [404, "no such client domain"],
  client_not_found: [404, "no such client"],
  secret_not_found: [404, "no such live secret"],
  apikey_not_found: [404, "no such live API key"],
  last_owner: [409, "an organization keeps at least one owner"],
  domain_exists: [409, "the organization has this domain in this environment already"],
  too_many_secrets: [409, "a client has at most two live secrets; revoke one first"],
  too_many: [409, "the limit is reached: there are as many as there may be"],
  proof_missing: [422, "the proof of the domain was not found"],
  // Issuers and verified fields
  issuer_not_found: [404, "no such issuer"],
  issuer_distrusted: [403, "this issuer is not trusted any more"],
  credential_not_found: [404, "no such credential"],
  idempotency_key_conflict: [
    409,
    "idempotency_key_conflict: this Idempotency-Key was used for another call",
  ],
  verification_not_found: [404, "no such verification"],
  verification_over: [410, "this verification has ended; start again"],
  code_wrong: [422, "wrong code"],
  // Businesses and what is asked of them (KYB); messages begin with the reason
  kyb_not_entitled: [403, "kyb_not_entitled: the organization lacks the entitlement of this route"],
  kyb_signature_not_entitled: [
    403,
    "kyb_signature_not_entitled: the organization lacks kyb:signature",
  ],
  pii_not_entitled: [403, "pii_not_entitled: a field tells of a person; that takes kyb:pii"],
  field_not_priced: [400, "field_not_priced: the field has no price"],
  idempotency_key_required: [400, "idempotency_key_required: name an Idempotency-Key"],
  unknown_field: [422, "unknown_field: not a field of the catalogue"],
  field_not_available: [422, "field_not_available: the business has no live value of it"],
  business_not_verified: [422, "business_not_verified: the business is not verified, or suspended"],
  document_refused: [422, "document_refused: such a document is never signed on request"],
  no_webhook_endpoint: [409, "no_webhook_endpoint: register a webhook endpoint first"],
  endpoint_not_found: [404, "endpoint_not_found: no webhook endpoint is registered"],
  endpoint_not_quarantined: [409, "endpoint_not_quarantined: the endpoint is active"],
  business_not_found: [404, "business_not_found: no such business"],
  business_exists: [
    409,
    "business_exists: a business was founded with this salt before; choose another",
  ],
  removal_refused: [422, "removal_refused: this member cannot be removed now"],
  nothing_to_end: [409, "nothing_to_end: nothing is under way that this identity could end"],
  request_already_open: [
    409,
    "request_already_open: this client domain has an open request to the business",
  ],
  request_not_open: [409, "request_not_open: the request has ended"],
  offer_not_found: [404, "offer_not_found: no such offer"],
  offer_not_open: [409, "offer_not_open: the offer was claimed, cancelled, or has expired"],
  not_released: [404, "not_released: nothing was released yet"],
  not_signed: [404, "not_signed: nothing was signed yet"],
  no_credit_account: [402, "no_credit_account: the organization has never had credit"],
  requester_blocked: [
    403,
    "requester_blocked: the business takes no requests of this organization",
  ],
  ballot_not_found: [404, "ballot_not_found: no such vote for this identity"],
  ballot_over: [409, "ballot_over: this vote has ended"],
  ballot_changed: [409, "ballot_changed: members or rules have changed; look at it again"],
  already_voted: [409, "already_voted: this identity has voted already"],
  business_login_open: [
    409,
    "business_login_open: another login of this identity for a business waits for its members; end it first",
  ],
  not_a_member: [
    403,
    "not_a_member: this identity is no voting member of the business, or the business is suspended",
  ],
  // Packages, ledger and orders; messages of the service document where it has one
  package_not_found: [404, "no such package"],
  insufficient_credit: [402, "insufficient_credit: the balance is too low"],
  payment_booked: [409, "this payment was booked before"],
  source_key_not_found: [404, "source key not found"],
  expiration_out_of_range: [400, "expiration time is not in valid range"],
  dynamic_fields_unsupported: [400, "sourcekey does not support dynamic fields"],
  invalid_fields: [400, "user fields are invalid fields"],
  no_fields: [400, "no fields provided"],
  order_ongoing: [422, "there is already an ongoing request"],
  unverified_fields: [422, "unverified fields"],
  package_exhausted: [402, "package is exhausted"],
  order_not_found: [404, "order not found"],
  order_not_cancellable: [422, "order can not be cancelled"],
  receipt_not_found: [404, "the order has no settled consent yet"],
  event_not_found: [404, "event_not_found: no such event"],
  payload_expired: [410, "payload_expired: the data of this event was purged"],
  simulation_refused: [
    422,
    "simulation acts only in the sandbox, and for identities that were made for it",
  ],
  request_not_found: [404, "request_not_found: no such request"],
  request_over: [410, "this request is over; ask for a new one"],
  result_refused: [422, "the result is refused"],
  // Wallet side of a login
  login_not_found: [404, "no such login"],
  other_browser: [404, "this login began in another browser and has ended; start again there"],
  already_claimed: [409, "this login was claimed by another wallet"],
  not_claimed: [409, "claim the login first"],
  login_over: [409, "this login has ended; start again"],
  code_expired: [410, "this code is no longer shown; scan the current one"],
  wrong_channel: [409, "this login was opened another way"],
  claim_wrong: [403, "the claim secret does not belong to this login"],
  identity_changed: [409, "the login was claimed for another identity"],
  identity_refused: [403, "this login is for another identity"],
  acr_unmet: [403, "this client asks for a login on the same device or from the same network"],
  wrong_number: [403, "wrong number; the login has ended"],
  number_required: [409, "this login needs the number that the page shows"],
  signature_wrong: [422, "the signature is of another identity, or over something else than this"],
  unsupported: [422, "this is not supported here"],
  wallet_session_required: [401, "a wallet session is required"],
  mailbox_empty: [404, "nothing is there: it was taken, its time is over, or it never was"],
  not_delivered: [422, "the other side cannot be reached, or may not be called"],
  challenge_wrong: [422, "the challenge is unknown, used or past its deadline"],
} as const satisfies Record<string, readonly [status: number, message: string]>;

export type Reason = keyof typeof table;

/**
 * OAuth error codes in use: RFC 6749 4.1.2.1 and 5.2, RFC 6750 3.1, RFC 8707 2, RFC 9126 2.3, RFC 9449 5 and 8, OpenID
 * Connect Core 3.1.2.6.
 */
export type OAuthCode =
  | "invalid_request"
  | "invalid_client"
  | "invalid_grant"
  | "unauthorized_client"
  | "unsupported_grant_type"
  | "invalid_scope"
  | "access_denied"
  | "unsupported_response_type"
  | "server_error"
  | "temporarily_unavailable"
  | "invalid_target"
  | "login_required"
  | "request_not_supported"
  | "request_uri_not_supported"
  | "registration_not_supported"
  | "invalid_request_uri"
  | "invalid_token"
  | "insufficient_scope"
  | "invalid_dpop_proof";

export interface ProblemOptions {
  /** Replaces the table's message; starts with the literal text of the specification where there is one. */
  message?: string;
  /** Public, machine-readable. */
  details?: Record<string, unknown>;
  /** Whole seconds, for the pages of browsers; the header is among {@link headers}. */
  retryAfterSeconds?: number;
  headers?: Record<string, string>;
}

/** An outage mostly ends within seconds, and another process may answer at once. */
const unavailableHeaders = { headers: { "retry-after": "1" } };

/** A refusal that is sent to the caller in the error envelope of decisions section 1. */
export class Problem extends Error {
  readonly reason: Reason;
  readonly status: number;
  readonly options: ProblemOptions;

  constructor(reason: Reason, options: ProblemOptions = {}) {
    super(options.message ?? table[reason][1]);
    this.reason = reason;
    this.status = table[reason][0];
    this.options = this.status === 503 ? { ...unavailableHeaders, ...options } : options;
  }
}

/**
 * The same refusal in the form of KYB (decisions section 6): the reason before its message, and `malformed_request` for
 * any fault of the input.
 */
export function inWordsOfKyb(problem: Problem): Problem {
  const reason = problem.reason === "invalid_request" ? "malformed_request" : problem.reason;
  const told = problem.message.replace(/^Invalid Request: /, "");
  const message = told.startsWith(`${reason}: `) ? told : `${reason}: ${told}`;
  return new Problem(reason, { ...problem.options, message });
}

/**
 * The refusal of a caller's input, worded as in the service document; `fault` says what is wrong, beginning with the
 * name of the member.
 */
export function invalidRequest(fault: string): Problem {
  return new Problem("invalid_request", { message: `Invalid Request: ${fault}` });
}

/** The statuses of the codes that are not answered with 400. */
const oauthStatuses: { readonly [each in OAuthCode]?: number } = {
  invalid_client: 401,
  invalid_token: 401,
  insufficient_scope: 403,
  server_error: 500,
  temporarily_unavailable: 503,
};

export interface OAuthProblemOptions {
  status?: number;
  headers?: Record<string, string>;
  /** Scheme of the `WWW-Authenticate` challenge of a resource; any other 401 asks for `Basic`. */
  challenge?: "Bearer" | "DPoP";
}

/** A refusal of an OAuth endpoint: `{ error, error_description }`. The description is ASCII without `"` and `\` (RFC 6749 5.2). */
export class OAuthProblem extends Error {
  readonly code: OAuthCode;
  readonly status: number;
  readonly options: OAuthProblemOptions;

  constructor(code: OAuthCode, description: string, options: OAuthProblemOptions = {}) {
    super(description.replaceAll(/[^\x20-\x21\x23-\x5b\x5d-\x7e]/g, "?"));
    this.code = code;
    this.status = options.status ?? oauthStatuses[code] ?? 400;
    this.options = options;
  }
}

type Unauthenticated = {
  [each in Reason]: (typeof table)[each][0] extends 401 ? each : never;
}[Reason];

/**
 * A key is sent as it is, for which there is no registered scheme; `Bearer` would make callers write that before the
 * key.
 */
const keyChallenge = 'ApiKey realm="svc"';
const challenges: { readonly [each in Reason]?: string } = {
  apikey_missing: keyChallenge,
  apikey_invalid: keyChallenge,
  wallet_session_required: 'Bearer realm="svc"',
} satisfies Record<Unauthenticated, string>;

/** The `WWW-Authenticate` of a 401 (RFC 9110 section 11.6.1); null for a reason with another status. */
export function challengeOf(reason: Reason): string | null {
  return challenges[reason] ?? null;
}

/** The HTTP status that a reason always has. */
export function statusOf(reason: Reason): number {
  return table[reason][0];
}

/** Rows of the error table for the generated reference. */
export function listProblems(): { reason: Reason; status: number; message: string }[] {
  return Object.entries(table).map(([reason, [status, message]]) => ({
    reason: reason as Reason,
    status,
    message,
  }));
}

/** Why a call of the SDK failed. Codes are stable: programs branch on them, messages are for people. */
export type MerchantErrorCode = keyof typeof messages;

/**
 * Everything the SDK throws on purpose. No message holds a token, a secret or an identity, so it may be logged.
 */
export class MerchantError extends Error {
  override readonly name = "MerchantError";
  readonly code: MerchantErrorCode;
  /**
   * The check that failed (for a token `aud`, `nonce`, ...; for a webhook `timestamp`, ...; for a receipt or proof the
   * member that is wrong), or why the broker refused: the `error` of RFC 6749, or the `reason` of the service's table
   * of errors.
   */
  readonly reason?: string;
  /** The HTTP status of the service's answer to a call with an API key. */
  readonly status?: number;
  /** Names the call in the service's log: quote it when you ask for help. */
  readonly requestId?: string;
  /** What the service adds for programs, such as `requiredChf`. */
  readonly details?: Readonly<Record<string, unknown>>;
  /** With rate_limited: when to call again. */
  readonly retryAfterSeconds?: number;
  readonly #explanation: string | undefined;

  constructor(code: MerchantErrorCode, options: MerchantErrorOptions = {}) {
    const { reason } = options;
    const remedy = reason === undefined ? undefined : remedies[code]?.[reason];
    super(
      [messages[code], ...(reason === undefined ? [] : [`[${reason}]`]), remedy].join(" ").trim(),
      {
        cause: options.cause,
      },
    );
    this.code = code;
    const { status, requestId, details, retryAfterSeconds } = options;
    if (reason !== undefined) this.reason = reason;
    if (status !== undefined) this.status = status;
    if (requestId !== undefined) this.requestId = requestId;
    if (details !== undefined) this.details = details;
    if (retryAfterSeconds !== undefined) this.retryAfterSeconds = retryAfterSeconds;
    this.#explanation = options.explanation;
  }

  /**
   * What the service says is wrong, in one line, such as which member of a call and why. It is for people who look for
   * the fault, not for programs. It may repeat what you sent, so neither the message nor a log of this error shows it.
   */
  get explanation(): string | undefined {
    return this.#explanation;
  }
}

/** What is known about a failure in addition to its code. */
export interface MerchantErrorOptions {
  reason?: string | undefined;
  status?: number | undefined;
  requestId?: string | undefined;
  details?: Readonly<Record<string, unknown>> | undefined;
  retryAfterSeconds?: number | undefined;
  explanation?: string | undefined;
  cause?: unknown;
}

/** The error for an option that the SDK cannot work with. @param option its name */
export function misconfigured(option: string): MerchantError {
  return new MerchantError("configuration_invalid", { reason: option });
}

/**
 * Refuses an optional check that is passed without a value, as from a record or session that lost it: that must not
 * switch the check off. Zero is a value.
 *
 * @throws {MerchantError} configuration_invalid
 */
export function requireGiven<Checks extends object>(
  checks: Checks,
  names: readonly (keyof Checks & string)[],
): void {
  for (const name of names) {
    const value: unknown = checks[name];
    if (name in checks && !value && value !== 0) throw misconfigured(name);
  }
}

const messages = {
  configuration_invalid:
    "The SDK was given an option it cannot work with; compare it with what you were given.",
  callback_invalid:
    "The callback is no URL, or holds no code or one parameter twice; pass the request's whole URL and start the login again.",
  state_mismatch:
    "This login was started in another browser, or has been finished already; start it again in this one.",
  issuer_mismatch:
    "The answer comes from another issuer; compare the option `issuer` with the `issuer` of the discovery document.",
  access_denied: "The person declined in the wallet; offer to try again.",
  login_required:
    "The broker cannot answer without the wallet; start the login again without prompt=none.",
  authorization_refused:
    "The broker refused the authorization request; compare redirectUri, audience and scope with the client's registration.",
  grant_refused:
    "The code or refresh token is used, expired or revoked; let the person log in again.",
  client_refused:
    "The broker does not know this client by this secret; compare clientId and clientSecret with those that you were given.",
  request_refused: "The broker refused the request; the reason is its `error` of RFC 6749.",
  access_token_refused:
    "The access token is expired or revoked; refresh it, or let the person log in again.",
  token_refused: "The token is not to be trusted; let the person log in again.",
  subject_changed: "The answer belongs to another person; end this session.",
  redirect_refused:
    "After a logout people return to the origin of redirectUri only; pass a postLogoutRedirectUri there.",
  issuer_unreachable: "The broker did not answer in time or failed; try again shortly.",
  response_invalid:
    "The broker's answer is not what the standard says; check that `issuer` names the broker itself.",
  apikey_refused:
    "The service does not know this API key, or it belongs to the other environment; compare it with the one that you were given.",
  call_refused:
    "The service refused the call; `explanation` says why, and its table of errors what the reason means.",
  rate_limited: "Too many calls; try again after retryAfterSeconds.",
  webhook_refused:
    "This did not come from the service, or not now; answer 400, change nothing, and compare the signing key with the one that you were given.",
  infos_invalid: "The delivered data is not what the service writes; ask for it once more.",
  event_misplaced: "The event belongs to another order; look the state up by its referenceKey.",
  receipt_refused: "The receipt proves nothing: a part of it is not what it should be.",
  attestation_refused:
    "The attestation is not to be trusted: a check of it failed; keep nothing of it.",
  signature_refused:
    "The business did not sign this: the chain knows no such signature, or it is of another document.",
  proof_refused: "The proof proves nothing: a part of it is not what it should be.",
  chain_unreachable: "The chain's node did not answer in time or failed; try again shortly.",
} as const;

const optionRemedies: Record<string, string> = {
  issuer: "It is https, or http on this machine, without a slash at its end.",
  redirectUri: "It is https, or http on this machine, without a fragment.",
  clientId: "It is missing or empty.",
  clientSecret: "It is empty, or no text.",
  apiKey: "It is missing, or holds a space: leave `Bearer` away.",
  scope: "It has to hold `openid`.",
  state: "It has to be as hard to guess as 128 random bits: at least 22 characters.",
  subject: "Pass the `subject` of the login.",
  audience: "Pass your API's own name.",
  now: "It is in Unix seconds, not in milliseconds.",
  headers: "Pass the headers of the request, an object or a Headers.",
  rawBody: "Pass the bytes as received, before any parser: a Buffer or another Uint8Array.",
  signingKeys: "Pass a list of texts, none of them empty.",
  secrets: "Pass a list of texts, none of them empty.",
  timeoutMs: "It is a whole number of milliseconds, from 1 to 2,147,483,647.",
  confirmations: "It is a whole number from 0.",
  rpcUrl: "It is the address of a node of the chain, http or https; or pass a `client`.",
  id: "Pass the id, or the business's address, as a text.",
  idempotencyKey: "It is 1 to 255 visible ASCII characters.",
};

const webhookRemedies: Record<string, string> = {
  header: "Its signature is missing or malformed.",
  signature: "A body that was parsed and written again never matches: pass the bytes as received.",
  timestamp: "It was signed more than five minutes from now; compare this machine's clock.",
};

/** Where to look, for someone who finds a refused token in the log. */
const tokenRemedies: Record<string, string> = {
  form: "It is no signed JWT.",
  alg: "It is signed with an algorithm that the broker did not announce.",
  typ: "It is a token of another kind: an access token is no id token, nor the reverse.",
  kid: "Its key is not in the broker's JWKS.",
  signature: "Its signature is wrong.",
  iss: "It was issued by another issuer.",
  aud: "It was issued for another client or audience; compare `clientId` and `audience`.",
  exp: "It has expired; compare this machine's clock with the broker's.",
  iat: "It was issued in the future; compare this machine's clock with the broker's.",
  nbf: "It is not valid yet; compare this machine's clock with the broker's.",
  nonce: "It answers another login.",
  at_hash: "The access token was exchanged on the way.",
  auth_time: "The person's approval is older than `maxAge`.",
  cnf: "It is bound to a key and no bearer token.",
};

/** By code and reason: what to look at first. */
const remedies: Partial<Record<MerchantErrorCode, Record<string, string>>> = {
  configuration_invalid: optionRemedies,
  webhook_refused: webhookRemedies,
  token_refused: tokenRemedies,
};

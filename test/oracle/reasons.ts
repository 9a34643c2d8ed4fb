/** Why outcomes differ on purpose. Sections are those of decisions.md unless a document is named. */
export const why = {
  noImplicit:
    "No implicit or hybrid grant (section 2, Grants), so none of their errors belongs in the fragment: a refused request is answered in the query, RFC 6749 section 4.1.2.1.",
  responseTypeExact:
    "`code` is the only response type; RFC 6749 section 3.1.1 defines no list that names it twice.",
  queryOnly:
    'A code is sent only in the query of a 303 (section 2, redirect_uri); discovery says `response_modes_supported: ["query"]`.',
  responseModeCode:
    "No document gives `unsupported_response_mode` to plain responses; RFC 6749 section 4.1.2.1 has `invalid_request` for a parameter value that is not supported.",
  scopeNeeded:
    "No default scope exists, so a request without one fails with `invalid_scope`: RFC 6749 section 3.3.",
  scopeKnown:
    "As Ory Hydra answers, whose contract this is (section 2): an unknown scope is `invalid_scope` (RFC 6749 section 4.1.2.1) instead of silently granting less than was asked for.",
  bounded:
    "Every parameter has a bound (section 1, Bounds); a longer one makes the request malformed.",
  challengeLength:
    "The S256 challenge is a SHA-256 in base64url, which has 43 characters: RFC 7636 section 4.2. No verifier could ever match one of another length.",
  selectAccount: "`prompt=select_account` acts as `login` (section 2, Scopes).",
  maxAgeDecimal:
    "OpenID Connect Core section 3.1.2.1 wants whole seconds; JavaScript's other spellings of numbers do not count.",
  sessionElse:
    "Whatever a session may not answer is `login_required` (section 2, Session): the wallet logs in and consents in one step.",
  sessionNone:
    "A session never answers for a client of type `none` (section 2, Session): nothing distinguishes that client from a copy.",
  thumbprint:
    "RFC 9449 section 10: the value is a SHA-256 thumbprint; one that no key can have is refused now instead of at the token endpoint.",
  oneAudience:
    "Several audiences, or one that is not registered, are `invalid_target` (section 2, audience); `audience` and `resource` are the same parameter.",
  audienceKnown:
    "oidc-provider has no parameter `audience` and ignores it; here it must be registered (section 2, audience).",
  pushedAlone:
    "A request_uri stands for all parameters, and parameters beside it are not used (RFC 9126 section 4, RFC 9101 section 6.3): without the pushed request there is no redirect_uri to send an error to.",
  pushedIgnores:
    "Parameters beside a request_uri are not used, right or wrong (RFC 9101 section 6.3).",
  pushedNested:
    "RFC 9126 section 2.1 forbids a pushed request_uri, and `invalid_request` is its error for a request that breaks its rules.",
  offlineAlias:
    "`offline` or `offline_access` yields a refresh token (section 2, Scopes); oidc-provider knows only the second.",
  offlinePrompt:
    "The wallet is the consent screen (section 2, Session), so every login has the consent that OpenID Connect Core section 11 asks `prompt` for.",
  refreshGrace:
    "Within 10 seconds a repeat of the last refresh token gets the same successor (section 2, Refresh), so a lost answer does not cost the login.",
  machineBrowser:
    "RFC 6749 section 5.2 has `unauthorized_client` for a client that may not use the grant.",
  machineScope:
    "Every scope speaks about a user; one that cannot be granted is `invalid_scope` (RFC 6749 section 5.2).",
  authenticationFailed:
    "RFC 6749 section 5.2: missing or failed client authentication is `invalid_client`, and a 401 has a challenge (RFC 9110 section 15.5.2).",
  everyChallenge:
    "RFC 9110 section 15.5.2: a 401 names a scheme that the endpoint takes, however this client authenticates; some HTTP libraries fail without.",
  registeredMethod:
    "A client authenticates only by the method that it is registered for (section 2, Client types).",
  assertionInvalid: "RFC 7521 section 4.2.1: an assertion that is not valid is `invalid_client`.",
  assertionAudience:
    "`aud` is the issuer as one string (section 2, Client types), so no other server can replay the assertion.",
  assertionTimes:
    "RFC 7523 section 3 lets the server refuse an `exp` unreasonably far ahead: 5 minutes here, which bounds how long a `jti` is kept. An `iat` in the future is refused for the same reason.",
  dpopWindow:
    "RFC 9449 section 11.1 leaves the window to the server; here it is 60 seconds either way.",
  dpopReplay:
    "RFC 9449 section 5: an invalid proof is `invalid_dpop_proof`, a replayed one included.",
  dpopKept:
    "RFC 9449 section 5 frees refresh tokens of clients with a secret from one particular key, not from proof of possession: tokens of a bound login never turn into Bearer tokens.",
  dpopAtResource:
    "RFC 9449 section 7.1: a resource answers a missing or replayed proof by 401 with the code `invalid_dpop_proof` in its challenge.",
  noToken:
    "RFC 6750 section 3.1: a request that carries no token by a method that is supported (never the query) is answered by 401 with a challenge.",
  userOnly:
    "RFC 6750 section 3.1: the token is valid but lacks the scope; `/userinfo` takes user tokens with `openid` only (section 2, audience).",
  audienceAndUserinfo:
    "`audience` and `/userinfo` work together (section 2): a user token with `openid` is accepted whatever its audience.",
  introspectUnknown:
    "RFC 7662 section 2.2: anything that is not an access or refresh token is simply not active.",
  introspectOwn:
    "Introspection answers only for tokens of the caller or with its audience (section 2, Refresh).",
  introspectConfidential:
    "RFC 7662 section 2.1: the caller must be authorized; a client with neither secret nor key cannot be.",
  revokeSilent:
    "As Ory Hydra answers, whose contract this is (section 2): 200, and nothing is revoked, so nobody learns whether somebody else's token exists. RFC 7009 section 2.1 would refuse.",
} as const;

/** A client that failed to prove itself without the `Authorization` header. */
export const unchallenged = {
  theirs: "401 invalid_client, no challenge",
  ours: "401 invalid_client",
  reason: why.everyChallenge,
} as const;
